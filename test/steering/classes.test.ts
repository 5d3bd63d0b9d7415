import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { CLIENTS, candidates, choose, createTable, NetLocator } from './stage.ts'

t.test('a new code is built in the background while queries go by the old trie', async (t) => {
  const locator = new NetLocator()
  const { table, errors } = createTable(locator)
  const first = table.compose(candidates([{ code: 'GEO-NA' }, { code: '*' }]), RRType.A)!
  await table.built()
  t.equal(locator.classified, 1)
  locator.isSlow = true
  const second = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  table.refresh()
  t.same(choose(table, second, CLIENTS.country), [1], 'not known yet: the default')
  t.same(choose(table, first, CLIENTS.country), [0], 'the old one goes on')
  table.compose(candidates([{ code: 'US-CA' }, { code: '*' }]), RRType.A)
  table.refresh()
  t.equal(locator.pending.length, 1, 'one rebuild at a time')
  locator.pending.shift()!()
  await until(() => locator.pending.length === 1)
  t.same(choose(table, second, CLIENTS.country), [0], 'now it is known')
  locator.pending.shift()!()
  await table.settled()
  t.equal(locator.classified, 3, 'and what came meanwhile is built as well')
  table.refresh()
  t.equal(locator.pending.length, 0, 'nothing new, nothing to do')
  locator.change()
  t.equal(locator.pending.length, 1, 'a changed database is a reason')
  locator.failure = new Error('corrupt')
  locator.pending.shift()!()
  await table.settled()
  t.same(errors, ['corrupt'], 'a failure is logged')
  t.same(choose(table, second, CLIENTS.country), [0], 'and the old trie stays')
  table.close()
  locator.change()
  t.equal(locator.pending.length, 0, 'closed')
})

t.test('a forgotten refresh happens by itself', async (t) => {
  const locator = new NetLocator()
  const { table } = createTable(locator)
  const words = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  t.equal(locator.classified, 0)
  await Promise.resolve()
  t.equal(locator.classified, 1)
  await table.settled()
  t.same(choose(table, words, CLIENTS.country), [0])
})

t.test('sets that are gathered over several ticks are built once', async (t) => {
  const locator = new NetLocator()
  const { table } = createTable(locator)
  table.gather()
  for (const code of ['GEO-NA', 'US', 'US-CA']) {
    table.compose(candidates([{ code }, { code: '*' }]), RRType.A)
    await new Promise((resume) => setImmediate(resume))
  }
  t.equal(locator.classified, 0)
  await table.built()
  t.equal(locator.classified, 1)
  table.compose(candidates([{ code: 'DE' }, { code: '*' }]), RRType.A)
  await Promise.resolve()
  t.equal(locator.classified, 2, 'later ones are built by themselves again')
})

t.test('waiting callers continue once the classes have the codes composed by then', async (t) => {
  const locator = new NetLocator()
  locator.isSlow = true
  const classCounts: number[] = []
  const random = new Random(1)
  const table = new SteeringTable({
    locator,
    random,
    onError: () => {},
    onSnapshot: (snapshot) => classCounts.push(snapshot.trie.classCount),
  })
  const codes = (...texts: string[]) =>
    candidates([...texts.map((code) => ({ code })), { code: '*' }])
  t.equal(table.built(), undefined, 'no code, nothing to build')
  table.compose(codes('GEO-NA'), RRType.A)
  const events: string[] = []
  const wait = (name: string): void => {
    const built = table.built()
    if (built === undefined) events.push(`${name} at once`)
    else
      void built.then(
        () => events.push(name),
        (error: Error) => events.push(error.message),
      )
  }
  wait('first')
  table.compose(codes('GEO-NA', 'US'), RRType.A)
  wait('second')
  t.strictSame(classCounts, [1], 'no policy without its classes')
  locator.pending.shift()!()
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  await settle()
  t.strictSame(events, ['first'], 'one more rebuild for the second')
  t.equal(classCounts.at(-1), 2)
  locator.pending.shift()!()
  await settle()
  t.strictSame(events, ['first', 'second'])
  t.equal(classCounts.at(-1), 3, 'other threads got the snapshot before')
  wait('third')
  locator.change()
  wait('fourth')
  t.strictSame(events.slice(2), ['third at once', 'fourth at once'], 'all codes are known')
  locator.failure = new Error('corrupt')
  table.compose(codes('AS64500'), RRType.A)
  wait('fifth')
  while (locator.pending.length > 0) {
    locator.pending.shift()!()
    await settle()
  }
  t.equal(events.at(-1), 'corrupt')
  table.close()
  table.compose(codes('US-CA'), RRType.A)
  const before = events.length
  wait('last')
  await settle()
  t.equal(events.length, before + 1, 'no caller waits for a closed table')
})

t.test('many policies keep their own tiers', async (t) => {
  const { table } = createTable()
  const codes = ['US', 'US-CA', 'GEO-NA', 'AS64500', 'NET-OFFICE']
  const sets = Array.from({ length: 31 }, (_, i) => {
    const present = codes.filter((_, bit) => ((i + 1) >> bit) & 1)
    const endpoints = [...present.map((code) => ({ code })), { code: '*' }]
    return { present, words: table.compose(candidates(endpoints), RRType.A)! }
  })
  await table.built()
  for (const { present, words } of sets) {
    const want = present.includes('US') ? present.indexOf('US') : present.indexOf('GEO-NA')
    const found = choose(table, words, CLIENTS.country)
    t.same(found, [want === -1 ? present.length : want], present.join())
  }
})

/** Lets promises settle until `done`, at most a thousand times. */
async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !done(); turn++) await Promise.resolve()
}
