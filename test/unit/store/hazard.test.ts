import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

// Closing any descriptor of the database or the lock file drops the POSIX locks that SQLite holds on it, and a second host
// gets in (guarantees 5.1, "Hazard"; shown by the control in test/crash/store-lock.test.ts).

/** How the two files are named in the sources: the properties of the home's paths, and their names. */
const NAMES = /^(db|lockDb)$|\b(laneway|lock)\.db\b/;
const FILE_CALL =
  /^(\w+\.)*(open|read|write|append|copy|create|truncate|rename|link|symlink|unlink|rm|cp|chmod|chown|utimes|watch)/;

/** Calls that look like file calls and are given the database or the lock file. */
function hazardsIn(file: string, code: string): string[] {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true);
  const fromFs = new Set(
    source.statements
      .filter((node) => ts.isImportDeclaration(node))
      .filter(
        (node) =>
          ts.isStringLiteral(node.moduleSpecifier) && /^node:(fs|fs\/promises)$/.test(node.moduleSpecifier.text),
      )
      .flatMap((node) => importedNames(node)),
  );
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isFileCall(node, fromFs) && node.arguments.some(namesTheData)) {
      found.push(`${file}: ${node.getText()}`);
    }
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

function importedNames(node: ts.ImportDeclaration): string[] {
  const clause = node.importClause;
  const bindings = clause?.namedBindings;
  const named = bindings && ts.isNamedImports(bindings) ? bindings.elements.map((one) => one.name.text) : [];
  const whole = bindings && ts.isNamespaceImport(bindings) ? [bindings.name.text] : [];
  return [...named, ...whole, ...(clause?.name ? [clause.name.text] : [])];
}

function isFileCall(call: ts.CallExpression, fromFs: ReadonlySet<string>): boolean {
  const text = call.expression.getText();
  return (
    fromFs.has(text.split(".")[0] ?? "") &&
    FILE_CALL.test(text.includes(".") ? text.slice(text.indexOf(".") + 1) : text)
  );
}

function namesTheData(node: ts.Node): boolean {
  if (ts.isIdentifier(node) && NAMES.test(node.text)) return true;
  if ((ts.isStringLiteral(node) || ts.isTemplateLiteralToken(node)) && NAMES.test(node.text)) return true;
  return ts.forEachChild(node, (child) => namesTheData(child) || undefined) ?? false;
}

test("no source opens, copies or removes the database or the lock file by file calls (guarantees 5.1)", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  expect(sources.length).toBeGreaterThan(40);
  expect(sources.flatMap((file) => hazardsIn(file, readFileSync(`src/${file}`, "utf8")))).toEqual([]);
});

test("the search finds each way to do it, and nothing else", () => {
  const code = `
    import { readFileSync, openSync as open, statSync } from "node:fs";
    import * as files from "node:fs/promises";
    readFileSync(paths.db);
    open(join(home, "lock.db"), "r");
    await files.copyFile(home.paths.lockDb, target);
    await files.rm(\`\${home}/laneway.db\`);
    readFileSync(paths.token); statSync(paths.db); new Database(paths.db); openDatabase(paths.db);
  `;
  expect(hazardsIn("x.ts", code).map((line) => line.slice("x.ts: ".length))).toEqual([
    "readFileSync(paths.db)",
    'open(join(home, "lock.db"), "r")',
    "files.copyFile(home.paths.lockDb, target)",
    `files.rm(\`\${home}/laneway.db\`)`,
  ]);
});
