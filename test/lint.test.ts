import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { isAmbiguous } from './ambiguous-pattern.ts'

// Long: it checks the types of all sources.

/*
 * What Biome does not check: cyclomatic complexity, the number of parameters, and promises that
 * nothing waits for.
 */

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const COMPLEXITY_MAX = 15
const PARAMETERS_MAX = 5

/** The wire and the hot path: a call or an object for each step would cost too much there. */
const EXEMPT = [
  ...['dns/dnssec/', 'dns/message/', 'dns/name/', 'dns/text/put.ts'],
  ...['steering/steerer.ts', 'transport/udp/batch/', 'zone/image/'],
  ...['zone/lookup/', 'zone/zonefile/owner.ts', 'plugins/loadbalance/weights.ts'],
  ...['plugins/log/', 'plugins/rrl/rrl.ts', 'yaml/scan-block-yaml.ts', 'yaml/split-'],
]

const BRANCHES: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.IfStatement,
  ts.SyntaxKind.ForStatement,
  ts.SyntaxKind.ForInStatement,
  ts.SyntaxKind.ForOfStatement,
  ts.SyntaxKind.WhileStatement,
  ts.SyntaxKind.DoStatement,
  ts.SyntaxKind.CaseClause,
  ts.SyntaxKind.CatchClause,
  ts.SyntaxKind.ConditionalExpression,
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
])

/** One more than the number of branches (McCabe). Functions inside of `body` count for themselves. */
function complexityOf(body: ts.Node): number {
  let branches = 0
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) return
    if (BRANCHES.has(node.kind)) branches++
    ts.forEachChild(node, visit)
  }
  visit(body)
  return 1 + branches
}

/** Functions of a file that exceed a bound. */
function findLarge(file: string, source: ts.SourceFile): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const complexity = complexityOf(node.body)
      const parameters = node.parameters.length
      const name = node.name?.getText(source) ?? ''
      if (complexity > COMPLEXITY_MAX || parameters > PARAMETERS_MAX)
        found.push(`${file} ${name}: complexity ${complexity}, ${parameters} parameters`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function parse(text: string): ts.SourceFile {
  return ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true)
}

t.test('functions are simple and have few parameters', async (t) => {
  const branches = 'if (a && b) c();'.repeat(8)
  t.equal(findLarge('a', parse(`function f() { ${branches} }`)).length, 1, 'complexity 17')
  t.equal(findLarge('a', parse(`function f() { ${branches.slice(16)} }`)).length, 0, '15')
  t.equal(findLarge('a', parse('function f(a, b, c, d, e, f) {}')).length, 1, '6 parameters')
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name.endsWith('.ts'))
  const found = files
    .filter((file) => !EXEMPT.some((path) => file.startsWith(path)))
    .flatMap((file) => findLarge(file, parse(readFileSync(join(root, 'src', file), 'utf8'))))
  t.strictSame(found, [])
})

/** Files that build a regular expression at run time, and why its search is short. */
const BUILT_EXPRESSIONS = new Map([
  [
    'dns/rdata/groups.ts',
    'from constants; a text has one way to match, and all counts are bounded',
  ],
])

/** True for `new RegExp(...)` and `RegExp(...)`. A literal is neither. */
function buildsExpression(source: ts.SourceFile): boolean {
  let found = false
  const visit = (node: ts.Node): void => {
    const isCall = ts.isNewExpression(node) || ts.isCallExpression(node)
    if (isCall && node.expression.getText(source) === 'RegExp') found = true
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

t.test('a pattern of a user is searched in linear time, by LinearRegExp', async (t) => {
  t.ok(buildsExpression(parse('const a = new RegExp(text)')))
  t.ok(buildsExpression(parse('function f() { return RegExp(text, flags) }')))
  t.notOk(buildsExpression(parse('const a: RegExp = /a/; new LinearRegExp(a.source)')))
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const found = names
    .filter((name) => name.endsWith('.ts'))
    .filter((file) => buildsExpression(parse(readFileSync(join(root, 'src', file), 'utf8'))))
  t.strictSame(found, [...BUILT_EXPRESSIONS.keys()])
})

/** Ambiguous literals, and why their search is short. */
const AMBIGUOUS_LITERALS = new Map([
  ['records/validate/dns-record.ts', 'the pattern of the definition, for at most 255 characters'],
])

function findLiterals(source: ts.SourceFile): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.push(node.getText(source))
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found.map((text) => text.slice(1, text.lastIndexOf('/')))
}

t.test('a literal matches a text in one way, so that a search never tries many', async (t) => {
  for (const [pattern, want] of [
    ['^(?:[a-z0-9]|[a-f0-9])+x$', true],
    ['(a*)*b', true],
    ['(?:a+b?)+c', true],
    ['\\d+\\.?\\d*s', true],
    ['.*-.*-x', true],
    ['\\w*[a-z][\\w-]*$', true],
    ['(?:[\\w-]+\\.)*[\\w-]+$', false],
    ['\\d+(?:\\.\\d*)?s', false],
    ['(?:[a-z]([-a-z]{0,61}[a-z])?\\.){2,}', false],
    ['"(?:[^"\\\\]|\\\\.)*"', false],
  ] as const) {
    t.equal(isAmbiguous(pattern), want, pattern)
  }
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const found = names
    .filter((name) => name.endsWith('.ts'))
    .filter((file) => {
      const source = parse(readFileSync(join(root, 'src', file), 'utf8'))
      return findLiterals(source).some((pattern) => isAmbiguous(pattern))
    })
  t.strictSame(found, [...AMBIGUOUS_LITERALS.keys()])
})

/** True if a value of this type may be a promise. */
function mayBePromise(type: ts.Type): boolean {
  return type.isUnion() ? type.types.some(mayBePromise) : type.symbol?.name === 'Promise'
}

/** True for `promise.catch(f)` and `promise.then(f, g)`. */
function isHandled(call: ts.CallExpression): boolean {
  if (!ts.isPropertyAccessExpression(call.expression)) return false
  const { text } = call.expression.name
  return text === 'catch' || (text === 'then' && call.arguments.length === 2)
}

/** `file:line` of each statement that calls a function and drops its promise without `void`. */
function findFloating(program: ts.Program): string[] {
  const checker = program.getTypeChecker()
  const found: string[] = []
  for (const source of program.getSourceFiles()) {
    if (source.isDeclarationFile) continue
    const visit = (node: ts.Node): void => {
      if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) {
        const call = node.expression
        if (!isHandled(call) && mayBePromise(checker.getTypeAtLocation(call))) {
          const { line } = source.getLineAndCharacterOfPosition(node.getStart(source))
          found.push(`${relative(root, source.fileName)}:${line + 1}`)
        }
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

t.test('no promise floats: it is awaited, handled, or dropped by void', async (t) => {
  const path = join(root, 'tsconfig.build.json')
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} }
  const config = ts.getParsedCommandLineOfConfigFile(path, {}, host)
  if (config === undefined) throw new Error(`can't read ${path}`)
  const program = ts.createProgram(config.fileNames, config.options)
  t.ok(program.getSourceFiles().length > config.fileNames.length)
  t.strictSame(findFloating(program), [])
})
