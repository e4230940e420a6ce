// Owns: the name of a file of code by the language that its block names. Pure.

/** What models call a language, and how its files end. A language that is not listed ends in `txt`: no made-up or active ending. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ["bash", "sh"],
  ["c", "c"],
  ["c#", "cs"],
  ["c++", "cpp"],
  ["cpp", "cpp"],
  ["cs", "cs"],
  ["csharp", "cs"],
  ["css", "css"],
  ["csv", "csv"],
  ["diff", "diff"],
  ["go", "go"],
  ["golang", "go"],
  ["html", "html"],
  ["java", "java"],
  ["javascript", "js"],
  ["js", "js"],
  ["json", "json"],
  ["jsx", "jsx"],
  ["kotlin", "kt"],
  ["lua", "lua"],
  ["markdown", "md"],
  ["md", "md"],
  ["patch", "patch"],
  ["perl", "pl"],
  ["php", "php"],
  ["py", "py"],
  ["python", "py"],
  ["r", "r"],
  ["rb", "rb"],
  ["rs", "rs"],
  ["ruby", "rb"],
  ["rust", "rs"],
  ["sh", "sh"],
  ["shell", "sh"],
  ["sql", "sql"],
  ["swift", "swift"],
  ["toml", "toml"],
  ["ts", "ts"],
  ["tsx", "tsx"],
  ["typescript", "ts"],
  ["xml", "xml"],
  ["yaml", "yaml"],
  ["yml", "yaml"],
]);

/** `code-1.py`. */
export function codeFileName(number: number, language: string | undefined): string {
  return `code-${number}.${ENDINGS.get(language?.toLowerCase() ?? "") ?? "txt"}`;
}
