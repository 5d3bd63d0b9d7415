import t from 'tap'
import { tableChains } from '../../../../src/egress/sinks/nft/egress-table.ts'
import type { Nft } from '../../../../src/egress/sinks/nft/nft.ts'
import { NftEnforcer } from '../../../../src/egress/sinks/nft/nft-enforcer.ts'
import { digestOf, profileOf, rulesDigest } from '../../../../src/egress/sinks/nft/profile.ts'
import { scanListing, type TableListing } from '../../../../src/egress/sinks/nft/table-listing.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'
import { client, OPEN_NETWORK } from './place.ts'

/** nft whose transactions end when the test says so. */
class ScriptedNft implements Nft {
  /** Text of each transaction. */
  readonly lines: string[] = []
  /** Of `list`: what `nft list table` prints. */
  listing = ''
  #finish: ((fault: string) => void) | undefined
  onListed = () => {}

  commit(statements: readonly string[]): Promise<string> {
    this.lines.push(statements.join('; '))
    return new Promise((resolve) => (this.#finish = resolve))
  }

  /** Calls of `list`. */
  lists = 0

  async list(): Promise<TableListing | undefined> {
    this.lists++
    const listing = scanListing(this.listing, 'x')
    this.onListed()
    return listing
  }

  /** Calls of `glance`. */
  glances = 0
  glanced = (): Promise<TableListing | undefined> => Promise.reject(new Error('not scripted'))

  glance(): Promise<TableListing | undefined> {
    this.glances++
    return this.glanced()
  }

  async close(): Promise<void> {}

  get last(): string {
    return this.lines.at(-1) ?? ''
  }

  /** Ends the transaction in progress. */
  async end(fault = ''): Promise<void> {
    await turn()
    this.#finish!(fault)
    await turn()
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const OPTIONS = {
  table: 'x',
  elementsMax: 100_000,
  clusterNetworks: [],
  dnsPort: 5300,
  dnsAddresses: [],
  cutsConnections: false,
}

function stage() {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const nft = new ScriptedNft()
  const faults: string[] = []
  const enforcer = new NftEnforcer({
    ...OPTIONS,
    isDenied: () => false,
    clock,
    timers,
    canRefresh: true,
    nft: () => nft,
    onFault: (fault) => faults.push(fault),
    onRepair: () => {},
  })
  const pass = async (milliseconds: number) => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const allow = (address: string, endMs = 100_000) =>
    enforcer.allow({ client: '10.1.0.1', address }, [{ ports: undefined, endMs }])
  const withdraw = (address: string) => enforcer.allow({ client: '10.1.0.1', address }, [])
  return { enforcer, nft, faults, pass, allow, withdraw }
}

/** A stage whose client is in force. */
async function readyStage() {
  const made = stage()
  const set = made.enforcer.setClients([client(1)])
  await made.nft.end()
  await set
  return made
}

t.test('what is called in one turn is one transaction', async (t) => {
  const { enforcer, nft, allow } = stage()
  const set = enforcer.setClients([client(1)])
  const [a, b] = [allow('192.0.2.1'), allow('192.0.2.2')]
  await nft.end()
  t.strictSame(await Promise.all([set, a, b]), ['', '', ''])
  t.equal(nft.lines.length, 1)
  t.match(nft.last, 'goto profile_')
  t.match(nft.last, '{ 10.1.0.1 . 192.0.2.1 timeout 101s, 10.1.0.1 . 192.0.2.2 timeout 101s }')
})

t.test('a change during a transaction is in the next one', async (t) => {
  const { nft, allow, withdraw } = await readyStage()
  const first = allow('192.0.2.1')
  await turn()
  const equal = allow('192.0.2.1')
  const other = allow('192.0.2.2')
  await nft.end()
  t.equal(await first, '')
  t.equal(await equal, '', 'the second of two equal queries waits for the first')
  t.equal(nft.lines.length, 3)
  // It is withdrawn, and allowed again, while the kernel gets it.
  const gone = withdraw('192.0.2.2')
  await nft.end()
  t.match(nft.last, 'delete element inet x any4 { 10.1.0.1 . 192.0.2.2 }')
  const back = allow('192.0.2.2')
  await nft.end()
  t.match(nft.last, /add element inet x any4 \{ 10\.1\.0\.1 \. 192\.0\.2\.2 timeout/)
  await nft.end()
  t.strictSame(await Promise.all([other, gone, back]), ['', '', ''])
  t.equal(nft.lines.length, 5)
})

t.test('a failure, then success', async (t) => {
  const { enforcer, nft, faults, pass, allow } = await readyStage()
  nft.listing = ''
  const first = allow('192.0.2.1')
  await nft.end('Error: no memory')
  t.equal(await first, 'Error: no memory')
  const second = allow('192.0.2.1')
  await pass(99)
  t.equal(nft.lines.length, 2, 'not yet')
  await pass(1)
  t.match(nft.last, /^add table inet x; delete table inet x; add table inet x;/)
  t.match(nft.last, '10.1.0.1 . 192.0.2.1 timeout')
  await nft.end('Error: no memory')
  t.equal(await second, 'Error: no memory')
  t.equal(await allow('192.0.2.2'), 'Error: no memory', 'at once')
  await pass(200)
  await nft.end()
  t.equal(allow('192.0.2.1'), undefined)
  t.equal(allow('192.0.2.2'), undefined)
  t.strictSame(faults, ['Error: no memory', ''])
  t.match(enforcer.counts, { failures: 2, resyncs: 2 })
})

t.test('a client leaves with all that it was allowed', async (t) => {
  const { enforcer, nft, allow } = await readyStage()
  const waits = Array.from({ length: 5000 }, (_, i) => allow(`198.18.${i >> 8}.${i & 255}`))
  for (let i = 0; i < 3; i++) await nft.end()
  await Promise.all(waits)
  const { length } = nft.lines
  t.ok(length > 2, 'many elements are several transactions')
  const gone = enforcer.setClients([client(1, undefined, 2)])
  await nft.end()
  t.equal(await gone, '')
  t.equal(nft.lines.length, length + 1)
  const deleted = nft.last.split('; ').find((text) => text.startsWith('delete element'))
  t.equal(deleted?.split(',').length, 5000)
  t.match(nft.last, 'flush map inet x profiles4')
  t.equal(enforcer.size, 0)
})

t.test('a comparison does not undo what happens meanwhile', async (t) => {
  const { enforcer, nft, allow, withdraw } = await readyStage()
  const [a, b] = [allow('192.0.2.1'), allow('192.0.2.2')]
  await nft.end()
  await Promise.all([a, b])
  const ready = nft.last
  t.match(ready, '192.0.2.2')
  const element = (address: string) => `10.1.0.1 . ${address} timeout 100s expires 100s`
  nft.listing = `table inet x {\n\tset any4 {\n\t\telements = { ${element('192.0.2.1')},\n\t\t\t${element('192.0.2.2')} }\n\t}\n}\n`
  // The chains are not in the listing: clients change too, so they are not compared.
  let withdrawn: Promise<string> | undefined
  let added: Promise<string> | undefined
  nft.onListed = () => {
    withdrawn = withdraw('192.0.2.2')
    added = allow('192.0.2.3')
    void enforcer.setClients([client(1), client(2)])
  }
  const done = enforcer.check()
  await nft.end()
  await done
  t.equal(await withdrawn, '')
  t.equal(await added, '')
  t.equal(enforcer.size, 2, 'what was withdrawn is not adopted')
  t.equal(enforcer.counts.repaired, 0)
  t.equal(allow('192.0.2.3'), undefined, 'what was added is not missing')
})

t.test('a listing that takes long', async (t) => {
  const { enforcer, nft, pass, allow } = await readyStage()
  const wait = allow('192.0.2.1')
  await nft.end()
  await wait
  // Clients change meanwhile, so that the chains, which the listing does not have, are not compared.
  nft.onListed = () => {
    void enforcer.setClients([client(1), client(2)])
    void pass(20_000)
  }
  const element = '10.1.0.1 . 192.0.2.1 timeout 101s expires 81s'
  nft.listing = `table inet x {\n\tset any4 {\n\t\telements = { ${element} }\n\t}\n}\n`
  const done = enforcer.check()
  await nft.end()
  await done
  t.equal(enforcer.counts.repaired, 0, 'it was read at the end')
})

t.test('the end of a timeout', async (t) => {
  const { enforcer, nft, pass, allow } = await readyStage()
  void allow('192.0.2.1', 5000)
  await nft.end()
  t.equal(enforcer.size, 1)
  await pass(10_000)
  await enforcer.glance()
  t.equal(enforcer.size, 0, 'the kernel has removed it')
  t.equal(nft.lines.length, 2)
})

t.test('the end of the enforcer', async (t) => {
  const { enforcer, nft, allow } = await readyStage()
  const first = allow('192.0.2.1')
  await turn()
  const second = allow('192.0.2.2')
  const closed = enforcer.close()
  await nft.end()
  await closed
  t.equal(await first, '')
  t.equal(await second, 'closed')
  t.equal(await allow('192.0.2.3'), 'closed')
  t.equal(nft.lines.length, 2)
})

t.test('a look at the table waits for the one before', async (t) => {
  const { enforcer, nft, pass } = await readyStage()
  let finish: () => void = () => {}
  nft.glanced = () => {
    return new Promise((_, reject) => {
      finish = () => reject(new Error('slow'))
    })
  }
  await pass(10_000)
  await pass(10_000)
  t.equal(nft.glances, 2)
  finish()
  await turn()
  t.equal(enforcer.counts.missedChecks, 1)
  await pass(10_000)
  t.equal(nft.glances, 3)
})

/** A stage whose client and tables are those of an earlier process, with these elements in the kernel. */
function restartedStage(
  elements: readonly string[],
  { before = [client(1)], now = [client(1)] } = {},
) {
  const made = stage()
  const form = tableChains(OPTIONS)
  const entries = before.map(({ id, addresses, rules }) => {
    const comment = `${digestOf(id)} ${rulesDigest(rules.lists)}`
    return `${addresses[0]} comment "${comment}" : goto ${profileOf(rules.lists).name}`
  })
  const chains = [...form, ...profileOf(before[0]!.rules.lists).chains]
  const text = (allowed: readonly string[]) => `table inet x {
${chains.map(({ name }) => `\tchain ${name} {\n\t}\n`).join('')}\tmap profiles4 {
\t\telements = { ${entries.join(', ')} }
\t}
\tset any4 {
\t\telements = { ${allowed.map((one) => `10.1.0.1 . ${one} timeout 90s expires 80s`).join(', ')} }
\t}
}
`
  made.nft.glanced = async () => scanListing(text([]), 'x')
  made.nft.listing = text(elements)
  return { ...made, set: made.enforcer.setClients(now) }
}

t.test('after a restart, replies do not wait for a listing', async (t) => {
  const { enforcer, nft, set, allow, pass } = restartedStage([
    '192.0.2.1',
    '192.0.2.2',
    '192.0.2.3',
  ])
  await nft.end()
  t.equal(await set, '')
  t.strictSame([nft.lines.length, nft.lists, enforcer.size], [1, 0, 0])
  const known = allow('192.0.2.1')
  void allow('192.0.2.2', -1)
  await nft.end()
  t.equal(await known, '', 'it is written again')
  t.match(nft.last, /add element inet x any4 \{ 10\.1\.0\.1 \. 192\.0\.2\.1 timeout/)
  t.notMatch(nft.lines.slice(1).join(), /delete|flush/, 'nothing is removed before adopt')
  await enforcer.check()
  t.equal(nft.lists, 0)
  let isAdopted = false
  const adopted = enforcer.adopt().then((fault) => {
    isAdopted = true
    return fault
  })
  const written = allow('192.0.2.4')
  t.notOk(isAdopted)
  await nft.end()
  t.equal(await written, '', 'beside the listing')
  t.equal(await adopted, '')
  t.equal(nft.lists, 1)
  await pass(1000)
  await nft.end()
  t.match(nft.last, 'delete element inet x any4 { 10.1.0.1 . 192.0.2.2 }', 'what was set otherwise')
  t.equal(allow('192.0.2.3', 70_000), undefined, 'it was in force')
  t.equal(enforcer.size, 3)
})

t.test('a client that has changed waits for the listing', async (t) => {
  for (const now of [[client(1, OPEN_NETWORK)], [client(1, undefined, 2)]]) {
    const { enforcer, nft, set } = restartedStage(['192.0.2.1'], { now })
    await nft.end()
    t.equal(await set, '')
    t.strictSame([nft.lines.length, nft.lists], [1, 1])
    t.match(nft.last, 'delete element inet x any4 { 10.1.0.1 . 192.0.2.1 }')
    t.match(nft.last, 'flush map inet x profiles4')
    t.equal(enforcer.size, 0)
  }
  const { enforcer, nft, set, allow } = restartedStage(['192.0.2.1'])
  await nft.end()
  t.equal(await set, '')
  const changed = enforcer.setClients([client(1, OPEN_NETWORK)])
  await nft.end()
  t.equal(await changed, '')
  t.match(nft.last, 'delete element inet x any4 { 10.1.0.1 . 192.0.2.1 }', 'also later')
  t.equal(await enforcer.adopt(), '')
  const added = enforcer.setClients([client(1, OPEN_NETWORK), client(2)])
  await nft.end()
  t.equal(await added, '')
  t.equal(nft.lists, 1)
  void allow('192.0.2.1')
})

t.test('a listing that transactions interrupt: they wait for the next one', async (t) => {
  const { enforcer, nft, set, allow } = restartedStage(['192.0.2.1', '192.0.2.2'])
  await nft.end()
  await set
  nft.onListed = () => {
    if (nft.lists === 1) throw new Error('nft took too long')
  }
  const adopted = enforcer.adopt()
  await turn()
  const written = allow('192.0.2.3')
  await nft.end()
  await nft.end()
  t.strictSame([await adopted, await written], ['', ''])
  t.strictSame([nft.lists, enforcer.counts.missedChecks, enforcer.size], [2, 1, 3])
  t.equal(allow('192.0.2.1', 70_000), undefined)
})
