import { Worker } from 'node:worker_threads'
import { packRequests, type SignatureRequest, unpackSignatures } from './signature-batch.ts'
import type { BatchJob, BatchResult } from './signing-thread.ts'

/** A thread without work ends after this time. It takes 50 ms to start. */
const IDLE_MS = 10_000

/** Makes signatures; resolves to RRSIG rdata in the order of the requests. `apex`: lower-case wire form. */
export type SignatureMaker = (
  apex: Uint8Array,
  requests: readonly SignatureRequest[],
) => Promise<Uint8Array[]>

interface Waiting {
  readonly resolve: (signatures: Uint8Array[]) => void
  readonly reject: (error: unknown) => void
}

/** The thread of all zones: one processor signs at a time, so that the others answer queries. */
let running: { readonly worker: Worker; readonly waiting: Map<number, Waiting> } | undefined
let lastId = 0
let idle: NodeJS.Timeout | undefined

/** Makes signatures in a thread of low priority. The thread works on calls in their order. */
export const signInThread: SignatureMaker = (apex, requests) =>
  new Promise((resolve, reject) => {
    running ??= startThread()
    const { worker, waiting } = running
    const id = ++lastId
    // A key may fail here. Then nothing may wait for an answer, and the thread must not keep the process alive.
    worker.postMessage({ id, batch: packRequests(apex, requests) } satisfies BatchJob)
    clearTimeout(idle)
    waiting.set(id, { resolve, reject })
    worker.ref()
  })

function startThread(): NonNullable<typeof running> {
  // The sources run as .ts under a loader, and as .js after the build.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const url = new URL(`./signing-thread.${extension}`, import.meta.url)
  const worker = new Worker(url, { name: 'sextant sign' })
  worker.unref()
  const waiting = new Map<number, Waiting>()
  const fail = (error: unknown): void => {
    if (running?.worker === worker) running = undefined
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  worker.on('message', ({ id, octets }: BatchResult) => {
    const caller = waiting.get(id)
    if (typeof octets === 'string') caller?.reject(new Error(octets))
    else caller?.resolve(unpackSignatures(octets))
    waiting.delete(id)
    if (waiting.size > 0) return
    worker.unref()
    idle = setTimeout(endThread, IDLE_MS).unref()
  })
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the thread that signs ended early')))
  return { worker, waiting }
}

function endThread(): void {
  const ended = running
  running = undefined
  void ended?.worker.terminate()
}
