import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROBLEM_KINDS } from '../../src/base/telemetry/problems.ts'
import { root } from '../support/server.ts'

const PAGE = 'docs/reference/metrics.md'
/** How names of metrics begin. */
const PREFIX = /^(?:coredns|sextant|dns_provider|dns_health|domain|network_policy|process|nodejs)_/
/** A registration and its name, which may be a template: `gauge('name'`, `counter(name('rest'`. */
const REGISTRATION =
  /\b(?:counter|gauge|histogram|bulkHistogram)\(\s*(?:name\(\s*)?(['`])([a-z0-9_${}]+)\1/gi
/** A text that may be the beginning of names. */
const TEXT = /(['`])((?:coredns|sextant)_[a-z0-9_]+(?:\$\{\w+\}[a-z0-9_]*)?)\1/gi
const HOLE = /\$\{\w+\}/

/** Names of metrics as src has them: whole, or their beginnings and endings. */
function namesInSource() {
  const whole = new Set<string>()
  const parts = new Set<string>()
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    const text = readFileSync(join(root, 'src', file), 'utf8')
    for (const [, , name = ''] of text.matchAll(REGISTRATION)) {
      if (PREFIX.test(name) && !HOLE.test(name)) whole.add(name)
      else parts.add(name)
    }
    if (!/\b(?:counter|gauge|histogram)\(/.test(text)) continue
    for (const [, , name = ''] of text.matchAll(TEXT)) if (!whole.has(name)) parts.add(name)
  }
  return { whole, parts }
}

/** Whether a name begins and ends as a part with a hole does, or has a part in it. */
function isPartOf(part: string, name: string): boolean {
  const [head = '', tail = ''] = part.split(HOLE)
  if (PREFIX.test(part)) return name.startsWith(head) && name.endsWith(tail)
  return `${name}_`.includes(`_${(head + tail).replace(/^_/, '')}_`)
}

t.test('the page lists the metrics that the code registers, and no others', async (t) => {
  const page = readFileSync(join(root, PAGE), 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z0-9_]+)` \| (?:counter|gauge|histogram) \|/gm)]
  const listed = rows.map(([, name = '']) => name)
  t.strictSame(listed, [...new Set(listed)], 'each once')
  const { whole, parts } = namesInSource()
  t.ok(whole.size > 30, 'names were found')
  for (const name of whole) t.ok(listed.includes(name), `${PAGE} lacks ${name}`)
  for (const part of parts) {
    t.ok(
      listed.some((name) => isPartOf(part, name)),
      `${PAGE} lacks a metric with ${part}`,
    )
  }
  const beginnings = [...parts].filter((part) => PREFIX.test(part))
  const endings = [...parts].filter((part) => !PREFIX.test(part))
  for (const name of listed) {
    const isMade = [beginnings, endings].every((list) => list.some((part) => isPartOf(part, name)))
    const isWritten = [...beginnings].includes(name)
    t.ok(whole.has(name) || isWritten || isMade, `${name} is in src`)
  }
})

t.test('the page of the admin API has each kind of problem, in order', async (t) => {
  const page = readFileSync(join(root, 'docs/reference/admin-api.md'), 'utf8')
  const table = page.slice(
    page.indexOf('| kind | meaning |'),
    page.indexOf('A zone has these members'),
  )
  const kinds = [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, kind]) => kind)
  t.strictSame(kinds, [...PROBLEM_KINDS])
})
