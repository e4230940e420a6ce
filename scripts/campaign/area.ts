// Owns: what a campaign area is.

export interface UnitOptions {
  readonly unit: number;
  /** Different for each unit; the same one repeats the unit. */
  readonly seed: number;
  /** Break the promise on purpose: the unit must then report violations. */
  readonly control: boolean;
}

export interface UnitResult {
  /** Amounts, added up over the units. */
  readonly summary: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

export interface Area {
  readonly name: string;
  readonly about: string;
  /** Units of the full amount. */
  readonly units: number;
  run(options: UnitOptions): Promise<UnitResult>;
}
