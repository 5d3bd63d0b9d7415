import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DrainIndex } from '../../../src/health/drain/drain-index.ts'
import { scanDrains } from '../../../src/health/drain/drain-text.ts'
import { Drains } from '../../../src/plugins/admin/drains.ts'
import { TestSource } from '../../health/stage.ts'
import { FakeClock } from '../../support/setup.ts'

t.test('drains by annotations are listed once, and up to a bound', (t) => {
  const index = new DrainIndex()
  const drainOf = (i: number) => scanDrains(`record:shop/r${i} by=annotation`, '').drains[0]!.drain
  const all = Array.from({ length: 1500 }, (_, i) => drainOf(i))
  const scope = { path: '', source: 'records', records: new TestSource(), sitesOf: () => [] }
  index.add({ ...scope, unfiled: () => all })
  // Two blocks have the same records.
  index.add({ ...scope, unfiled: () => [...all.slice(0, 10), drainOf(11)] })
  const { drains, drainsOmitted } = new Drains(() => index, new FakeClock()).list()
  t.equal(drains.length, 1000)
  t.equal(drainsOmitted, 500)
  t.match(drains[0], { selector: 'record:shop/r0', actor: 'annotation', file: '' })
  t.end()
})

t.test('a drain ends in all files', async (t) => {
  const texts = {
    a: 'site:dublin by=ops\nsite:paris\n',
    b: 'site:paris\n',
    c: '# kept\nsite:dublin\n',
  }
  const directory = t.testdir(texts)
  const files = Object.keys(texts).map((name) => join(directory, name))
  const read = () => files.map((file) => readFileSync(file, 'utf8'))
  const index = new DrainIndex()
  const annotated = scanDrains('site:rome by=annotation', '').drains[0]!.drain
  for (const path of files) {
    const scope = { path, source: path, records: new TestSource(), sitesOf: () => [] }
    index.add({ ...scope, unfiled: () => [annotated] })
  }
  const drains = new Drains(() => index, new FakeClock())
  const { id } = scanDrains('site:dublin', '').drains[0]!.drain.selector
  const [a, , c] = files as [string, string, string]

  writeFileSync(c, 'nonsense\n')
  const before = read()
  await t.rejects(drains.end(id), /"nonsense" is not a selector/, 'an invalid file')
  t.strictSame(read(), before, 'no file is changed')
  writeFileSync(c, texts.c)

  const ended = await drains.end(id)
  t.match(ended, [
    { id, actor: 'ops', file: a },
    { id, actor: '', file: c },
  ])
  t.equal(ended.length, 2)
  t.strictSame(read(), ['site:paris\n', texts.b, '# kept\n'])
  t.strictSame(await drains.end(id), [], 'no drain has the id any more')
  await t.rejects(drains.end(annotated.selector.id), { message: /not in a drain file/ })
})
