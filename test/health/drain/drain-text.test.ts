import fc from 'fast-check'
import t from 'tap'
import { isSameDrain } from '../../../src/health/drain/drain.ts'
import { DRAINS_MAX, printDrainLine, scanDrains } from '../../../src/health/drain/drain-text.ts'
import { scanDrainSelector } from '../../../src/health/drain/selector.ts'
import { runs } from '../../support/runs.ts'

t.test('a file written by hand', async (t) => {
  const text = [
    '# our drains',
    '',
    '  site:dublin until=2026-11-24T18:00:00Z by=ops reason="racks \\"move\\" # 3"  # a comment',
    'id:"my set" host:*.example.com\tuntil=2026-11-24T19:00+01:00\r',
    'zone:k.test',
  ].join('\n')
  const { drains, faults } = scanDrains(text, 'drains')
  t.strictSame(faults, [])
  const untilMs = Date.UTC(2026, 10, 24, 18)
  t.match(drains, [
    {
      line: 3,
      drain: {
        selector: { text: 'site:dublin' },
        actor: 'ops',
        reason: 'racks "move" # 3',
        untilMs,
      },
    },
    {
      line: 4,
      drain: { selector: { text: 'host:*.example.com id:"my set"' }, actor: '', untilMs },
    },
    { line: 5, drain: { selector: { text: 'zone:k.test' }, reason: '', untilMs: undefined } },
  ])
})

t.test('faults have their lines, and do not hide the valid lines', async (t) => {
  const text = [
    'site:a',
    'site:b until=tomorrow',
    'site:c until=2026-13-01T00:00:00Z',
    'reason=none',
    'site:d color=red',
    'site:e by=x by=y',
    'site:f reason="open',
    'site:g',
    'site:a by=ops',
    `site:h reason=${'x'.repeat(1001)}`,
    `site:${'i'.repeat(9000)}`,
    '"site:j \\u00zz"',
  ].join('\n')
  const { drains, faults } = scanDrains(text, 'drains')
  t.strictSame(
    drains.map(({ drain }) => drain.selector.text),
    ['site:a', 'site:g'],
  )
  t.strictSame(
    faults.map((fault) => fault.print().replace(/;.*/, '')),
    [
      'drains:2: until "tomorrow" is not a time',
      'drains:3: until "2026-13-01T00:00:00Z" is not a time',
      'drains:4: the selector is missing',
      'drains:5: color is not a field',
      'drains:6: by appears twice',
      'drains:7: a string in double quotes is not valid JSON',
      'drains:9: line 1 has the same selector',
      'drains:10: reason is longer than 1000 characters',
      'drains:11: longer than 8192 characters',
      'drains:12: a string in double quotes is not valid JSON',
    ],
  )
})

t.test('a file has a bounded number of drains', async (t) => {
  const lines = Array.from({ length: DRAINS_MAX + 2 }, (_, i) => `site:s${i}`)
  const { drains, faults } = scanDrains(lines.join('\n'), 'drains')
  t.equal(drains.length, DRAINS_MAX)
  t.equal(faults.length, 2)
})

t.test('a large file of garbage has a bounded number of faults', async (t) => {
  const { drains, faults } = scanDrains(`${'x\n'.repeat(500_000)}site:a\n`, 'drains')
  t.equal(faults.length, 100)
  t.equal(drains.length, 1)
})

t.test('text that is no UTF-8, and control characters, are escaped', async (t) => {
  const selector = scanDrainSelector(['id:\ud800'])
  if (typeof selector === 'string') return t.fail(selector)
  const drain = {
    selector,
    reason: '\x1b[31m\x9b31m',
    actor: 'a\u202e\u200b\u{e0001}b',
    createdMs: undefined,
    untilMs: undefined,
  }
  const line = printDrainLine(drain)
  t.equal(line, 'id:"\\ud800" by="a\\u202e\\u200b\\udb40\\udc01b" reason="\\u001b[31m\\u009b31m"')
  t.equal(scanDrains(line, 'drains').drains[0]?.drain.selector.id, selector.id)
})

t.test('every drain is read back as it was', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 })
  const seconds = fc.option(fc.nat(4_000_000_000), { nil: undefined })
  const property = fc.property(text, text, text, seconds, seconds, (id, reason, actor, a, b) => {
    const selector = scanDrainSelector([`id:${id}x`, 'zone:k.test'])
    if (typeof selector === 'string') return false
    const times = [a, b].map((s) => (s === undefined ? undefined : s * 1000))
    const drain = { selector, reason, actor, createdMs: times[0], untilMs: times[1] }
    const { drains, faults } = scanDrains(printDrainLine(drain), 'drains')
    return faults.length === 0 && drains.length === 1 && isSameDrain(drains[0]!.drain, drain)
  })
  fc.assert(property, { seed: 1, numRuns: runs(1000) })
})
