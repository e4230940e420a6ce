// Owns: reading Prometheus' text format as its documentation describes it, apart from the library that writes it.

/** The value of each series, by its name with labels as it stands in the text. */
export type Samples = ReadonlyMap<string, number>;

const SAMPLE = /^([a-z_:][a-z0-9_:]*)(\{(?:[a-z_]\w*="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$/i;

/** Throws for a line that is neither comment nor sample, and for a series that is there twice or has no type. */
export function parsePrometheus(text: string): Samples {
  const typed = new Set(Array.from(text.matchAll(/^# TYPE (\S+) (?:counter|gauge|histogram)$/gm), ([, name]) => name));
  const samples = new Map<string, number>();
  for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("#"))) {
    const [, metric = "", labels = "", value] = SAMPLE.exec(line) ?? [];
    const isTyped = typed.has(metric) || typed.has(metric.replace(/_(bucket|sum|count)$/, ""));
    if (!isTyped || Number.isNaN(Number(value))) throw new Error(`expected a typed sample: ${line}`);
    if (samples.has(metric + labels)) throw new Error(`twice: ${line}`);
    samples.set(metric + labels, Number(value));
  }
  return samples;
}
