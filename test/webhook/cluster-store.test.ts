import t from 'tap'
import type { ApiClient } from '../../src/kube/api.ts'
import { ClusterRecordStore } from '../../src/webhook/cluster-store.ts'
import { StoreUnavailable } from '../../src/webhook/record-store.ts'
import { FakeTimers } from '../support/setup.ts'

t.test(
  'a list ends before external-dns gives up, although data arrives now and then',
  async (t) => {
    const timers = new FakeTimers()
    let touches = 0
    /** Sends an octet of the list each second. */
    const api = {
      get: async (_path: string, signal: AbortSignal) => {
        const body = new ReadableStream({
          start: (controller) => {
            const stop = timers.every(1000, () => {
              touches++
              controller.enqueue(new TextEncoder().encode(' '))
            })
            signal.addEventListener('abort', () => {
              stop()
              controller.error(signal.reason)
            })
          },
        })
        return new Response(body, { status: 200 })
      },
    } as unknown as ApiClient
    const store = new ClusterRecordStore({ api, timers, namespace: 'dns', owner: 'default' })
    const failed = store.list().then(
      () => undefined,
      (error: unknown) => error,
    )
    for (let second = 0; second < 15; second++) await timers.advance(1000)
    t.ok(touches >= 9 && touches <= 10, `${touches} octets`)
    const error = await failed
    t.type(error, StoreUnavailable)
    t.match(error, { message: 'the API server: no complete list within 10 s' })
    store.close()
  },
)
