import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { composeQuery, UdpClient } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { readReply } from '../../support/read-reply.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES, type Toy, toys } from './toys.ts'

/* What the threads of one server have in common, over real threads and sockets. */

t.setTimeout(300_000)

/** Enough for each of a few threads to have some of them. */
const CLIENTS = 16
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

async function ask(client: UdpClient, name: string): Promise<Answer> {
  const question = { name: `${name}.z.example`, type: 'A' }
  const packet = await client.ask(question, 60)
  const reply = readReply(packet, composeQuery(question, 0))
  if (typeof reply === 'string') throw new Error(reply)
  const [[, token, high, low], [, , threadHigh, threadLow]] = reply.addresses.map((a) => [
    ...a,
  ]) as [number[], number[]]
  return { token: token!, value: (high! << 8) | low!, thread: (threadHigh! << 8) | threadLow! }
}

/** A server over a Corefile that the test rewrites, and clients that reach all its threads. */
async function serve(t: Test, text: string) {
  const path = join(t.testdir({ Corefile: text }), 'Corefile')
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
  const askAll = (name: string): Promise<Answer[]> =>
    Promise.all(clients.map((client) => ask(client, name)))
  const reload = async (next: string): Promise<Toy> => {
    writeFileSync(path, next)
    t.equal(await server.supervisor.reload(), true, server.lines.join('\n'))
    return toys.at(-1)!
  }
  return { server, clients, askAll, reload, toy: toys.at(-1)! }
}

const distinct = (answers: readonly Answer[], key: keyof Answer): number[] =>
  [...new Set(answers.map((answer) => answer[key]))].sort((a, b) => a - b)

/** Waits until every thread answers with `value`. */
async function followed(askAll: (name: string) => Promise<Answer[]>, value: number): Promise<void> {
  const all = async (): Promise<boolean> =>
    distinct(await askAll('a'), 'value').join() === `${value}`
  await until(all, `value ${value} in all threads`, PATIENCE_MS)
}

t.test('every thread has what was published before it served, and after', async (t) => {
  const { askAll, toy } = await serve(t, corefile('1 100', 2))
  const answers = await askAll('a')
  t.strictSame(distinct(answers, 'token'), [1])
  t.strictSame(distinct(answers, 'value'), [100])
  t.equal(distinct(answers, 'thread').length, 2)
  t.notOk(distinct(answers, 'thread').includes(threadId), 'and not this one')
  for (let value = 101; value < 110; value++) toy.publish(value)
  await followed(askAll, 109)
})

t.test('counters are those of all threads together', async (t) => {
  const { askAll, toy } = await serve(t, corefile('1', 2))
  const answers = [...(await askAll('a')), ...(await askAll('b')), ...(await askAll('c'))]
  t.equal(distinct(answers, 'thread').length, 2)
  await until(() => toy.counted() >= 3 * CLIENTS, 'all to be counted')
  // A question that was asked twice because its answer took long is counted twice.
  t.ok(toy.counted() < 4 * CLIENTS)
})

t.test('a block that may wait is answered by the control thread', async (t) => {
  const { askAll, toy } = await serve(t, corefile('1 7 waits', 2))
  const answers = await askAll('a')
  t.strictSame(distinct(answers, 'thread'), [threadId])
  t.strictSame(distinct(answers, 'value'), [7])
  toy.publish(8)
  t.strictSame(distinct(await askAll('a'), 'value'), [8])
})

t.test('a reload under queries loses none, and no client goes back', async (t) => {
  const { server, clients, reload } = await serve(t, corefile('1'))
  let isOver = false
  const seen: number[][] = clients.map(() => [])
  const asking = clients.map(async (client, i) => {
    while (!isOver) seen[i]!.push((await ask(client, 'a')).token)
  })
  for (let token = 2; token <= 6; token++) {
    // More threads, fewer, as many.
    await reload(corefile(`${token}`, [2, 3, 1][token % 3]!))
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
  const { askAll, reload } = await serve(t, corefile('1 100', 1))
  t.equal(distinct(await askAll('a'), 'thread').length, 1)
  const toy = await reload(corefile('2 200', 3))
  t.equal(distinct(await askAll('a'), 'thread').length, 3)
  await followed(askAll, 200)
  toy.publish(201)
  await followed(askAll, 201)
})

t.test('a thread in place of one that ended has it too', async (t) => {
  const { server, askAll, clients, toy } = await serve(t, corefile('1 100', 2))
  const before = distinct(await askAll('a'), 'thread')
  toy.publish(101)
  await t.rejects(clients[0]!.ask({ name: 'die.z.example', type: 'A' }, 1, 500))
  await until(() => server.totals.panics > 0, 'its end', PATIENCE_MS)
  toy.publish(102)
  await followed(askAll, 102)
  toy.publish(103)
  await followed(askAll, 103)
  const after = distinct(await askAll('a'), 'thread')
  t.equal(after.filter((thread) => before.includes(thread)).length, 1, 'the other one lives')
  t.equal(after.length, 2)
  await until(() => toy.counted() > 3 * CLIENTS, 'the counters of all three')
  t.match(server.lines.join('\n'), /Data thread \d ended, starting another/)
})

t.test('texts of a thread come in order', async (t) => {
  const { clients, toy } = await serve(t, corefile('1', 2))
  await ask(clients[0]!, 'say-1000')
  await until(() => toy.texts.length >= 1000, 'all texts')
  t.strictSame(
    toy.texts.slice(0, 1000).map(Number),
    Array.from({ length: 1000 }, (_, i) => i),
  )
})

t.test('texts that find the ring full are dropped and counted', async (t) => {
  const { server, clients, toy } = await serve(t, corefile('1', 1))
  const count = 400_000
  await clients[0]!.ask({ name: `say-${count}.z.example`, type: 'A' }, 1, PATIENCE_MS)
  const lost = (): number => server.totals.losses.lines ?? 0
  await until(() => toy.texts.length + lost() === count, 'all texts', PATIENCE_MS)
  t.ok(lost() > 0, `${lost()} dropped`)
  t.ok(toy.texts.every((text, i) => i === 0 || Number(text) > Number(toy.texts[i - 1])))
  const before = toy.texts.length
  await ask(clients[0]!, 'say-10')
  await until(() => toy.texts.length >= before + 10, 'texts again')
})
