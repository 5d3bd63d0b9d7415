import t from 'tap'
import { askPrimary } from '../../src/client/ask-primary.ts'
import { FakeTimers } from '../support/setup.ts'

const CONNECT_MS = 5000

t.test('a primary that does not take the connection is soon given up', async (t) => {
  const timers = new FakeTimers()
  const done = askPrimary({
    primary: { host: '127.0.0.1', port: 1 },
    source: '',
    query: new Uint8Array(12),
    take: () => true,
    timers,
    idleMs: 30_000,
    totalMs: 60_000,
    octetsMax: 1000,
  })
  const fault = t.rejects(done, { message: 'no connection within 5 s' })
  // Before the event loop gets to hear what became of the connection.
  void timers.advance(CONNECT_MS)
  await fault
})

t.test('a signal aborts the exchange, also before it begins', async (t) => {
  const aborting = new AbortController()
  const start = (): Promise<void> =>
    askPrimary({
      primary: { host: '127.0.0.1', port: 1 },
      source: '',
      query: new Uint8Array(12),
      take: () => true,
      timers: new FakeTimers(),
      idleMs: 30_000,
      totalMs: 60_000,
      octetsMax: 1000,
      signal: aborting.signal,
    })
  const during = t.rejects(start(), { message: 'the transfer was cancelled' })
  aborting.abort()
  await during
  await t.rejects(start(), { message: 'the transfer was cancelled' })
})
