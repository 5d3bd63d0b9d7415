import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import t from 'tap'
import { composeQuery, UdpClient } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { readReply } from '../../support/read-reply.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES, type Toy, toys } from './toys.ts'

/* What the threads of one server have in common, over real threads and sockets. */

/** The kernel draws a thread for each: that one of three gets none of them happens less than once in 10^10 runs. */
const CLIENTS = 64
const PATIENCE_MS = 60_000

const corefile = (toy: string, threads = 2): string => `z.example:0 {
  bind 127.0.0.1
  multisocket ${threads}
  toy ${toy}
}
`

interface Answer {
  readonly token: number
  readonly value: number
  readonly thread: number
}

/** Asks once, and waits long; or again and again, where queries may be lost. */
async function ask(client: UdpClient, name: string, tries = 1): Promise<Answer> {
  const question = { name: `${name}.z.example`, type: 'A' }
  const packet = await client.ask(question, tries, PATIENCE_MS / tries)
  const reply = readReply(packet, composeQuery(question, 0))
  if (typeof reply === 'string') throw new Error(reply)
  const [[, token, high, low], [, , threadHigh, threadLow]] = reply.addresses.map((a) => [
    ...a,
  ]) as [number[], number[]]
  return { token: token!, value: (high! << 8) | low!, thread: (threadHigh! << 8) | threadLow! }
}

// One server for all tests: each reloads it with a Corefile of its own. Threads start slowly.
const path = join(t.testdir({ Corefile: corefile('0') }), 'Corefile')
const server = new DataServer(t, {
  module: new URL('./toys.ts', import.meta.url),
  directives: DIRECTIVES,
  corefile: { kind: 'file', path },
  threads: 1,
})
const port = await server.start()
const clients = await Promise.all(Array.from({ length: CLIENTS }, () => UdpClient.connect(port)))
t.teardown(() => {
  for (const client of clients) client.close()
})

async function reload(text: string): Promise<Toy> {
  writeFileSync(path, text)
  if (!(await server.supervisor.reload())) throw new Error(server.lines.join('\n'))
  return toys.at(-1)!
}

const askAll = (name: string, tries = 1): Promise<Answer[]> =>
  Promise.all(clients.map((client) => ask(client, name, tries)))

const distinct = (answers: readonly Answer[], key: keyof Answer): number[] =>
  [...new Set(answers.map((answer) => answer[key]))].sort((a, b) => a - b)

/** Waits until every thread answers with `value`. */
async function followed(value: number): Promise<void> {
  const all = async (): Promise<boolean> =>
    distinct(await askAll('a', 60), 'value').join() === `${value}`
  await until(all, `value ${value} in all threads`, PATIENCE_MS)
}

t.test('every thread has what was published before it served, and after', async (t) => {
  const toy = await reload(corefile('1 100', 2))
  const answers = await askAll('a')
  t.strictSame(distinct(answers, 'token'), [1])
  t.strictSame(distinct(answers, 'value'), [100])
  t.equal(distinct(answers, 'thread').length, 2)
  t.notOk(distinct(answers, 'thread').includes(threadId), 'and not this one')
  for (let value = 101; value < 110; value++) toy.publish(value)
  await followed(109)
})

t.test('counters are those of all threads together', async (t) => {
  const toy = await reload(corefile('1', 2))
  const answers = [...(await askAll('a')), ...(await askAll('b')), ...(await askAll('c'))]
  t.equal(distinct(answers, 'thread').length, 2)
  await until(() => toy.counted() >= 3 * CLIENTS, 'all to be counted')
  t.equal(toy.counted(), 3 * CLIENTS)
})

t.test('a block that may wait is answered by the control thread', async (t) => {
  const toy = await reload(corefile('1 7 waits', 2))
  const answers = await askAll('a')
  t.strictSame(distinct(answers, 'thread'), [threadId])
  t.strictSame(distinct(answers, 'value'), [7])
  toy.publish(8)
  t.strictSame(distinct(await askAll('a'), 'value'), [8])
})

t.test('a reload under queries loses none, and no client goes back', async (t) => {
  await reload(corefile('1'))
  let isOver = false
  const seen: number[][] = clients.map(() => [])
  const asking = clients.map(async (client, i) => {
    while (!isOver) seen[i]!.push((await ask(client, 'a')).token)
  })
  for (let token = 2; token <= 6; token++) {
    // More sockets, fewer.
    await reload(corefile(`${token}`, 1 + (token % 2)))
    const has = (): boolean => seen.every((tokens) => tokens.at(-1) === token)
    await until(has, `token ${token} everywhere`, PATIENCE_MS)
  }
  isOver = true
  await Promise.all(asking)
  for (const tokens of seen) {
    t.ok(tokens.every((token, i) => i === 0 || token >= tokens[i - 1]!))
    t.strictSame([...new Set(tokens)], [1, 2, 3, 4, 5, 6])
  }
  t.strictSame(
    server.lines.filter((line) => /fail|panic/i.test(line)),
    [],
  )
})

t.test('threads that start late have what was published before', async (t) => {
  await reload(corefile('1 100', 2))
  t.equal(distinct(await askAll('a'), 'thread').length, 2)
  const toy = await reload(corefile('2 200', 3))
  t.equal(distinct(await askAll('a'), 'thread').length, 3)
  await followed(200)
  toy.publish(201)
  await followed(201)
})

t.test('a thread in place of one that ended has it too', async (t) => {
  const toy = await reload(corefile('1 100', 2))
  const before = distinct(await askAll('a'), 'thread')
  toy.publish(101)
  await t.rejects(clients[0]!.ask({ name: 'die.z.example', type: 'A' }, 1, 500))
  await until(() => server.totals.panics > 0, 'its end', PATIENCE_MS)
  toy.publish(102)
  await followed(102)
  toy.publish(103)
  await followed(103)
  const after = distinct(await askAll('a'), 'thread')
  t.equal(after.filter((thread) => before.includes(thread)).length, 1, 'the other one lives')
  t.equal(after.length, 2)
  await until(() => toy.counted() > 3 * CLIENTS, 'the counters of all three')
  t.match(server.lines.join('\n'), /Data thread \d ended, starting another/)
})

t.test('texts of a thread come in order', async (t) => {
  const toy = await reload(corefile('1', 2))
  await ask(clients[0]!, 'say-1000')
  await until(() => toy.texts.length >= 1000, 'all texts')
  t.strictSame(
    toy.texts.slice(0, 1000).map(Number),
    Array.from({ length: 1000 }, (_, i) => i),
  )
})

t.test('texts that find the ring full are dropped and counted', async (t) => {
  const toy = await reload(corefile('1', 1))
  const count = 400_000
  await clients[0]!.ask({ name: `flood-${count}.z.example`, type: 'A' }, 1, PATIENCE_MS)
  const lost = (): number => server.totals.losses.lines ?? 0
  await until(() => toy.texts.length + lost() === count, 'all texts', PATIENCE_MS)
  t.ok(lost() > 0, `${lost()} dropped`)
  t.ok(toy.texts.every((text, i) => i === 0 || Number(text) > Number(toy.texts[i - 1])))
  const before = toy.texts.length
  await ask(clients[0]!, 'say-10')
  await until(() => toy.texts.length >= before + 10, 'texts again')
})
