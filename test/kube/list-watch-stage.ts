import type { Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { ListWatch } from '../../src/kube/list-watch.ts'
import type { WatchEvent } from '../../src/kube/watch-event.ts'
import { ApiDouble, type Asked, listBody, type Stream, turns } from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const RESOURCE = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
/** Longer than any wait between attempts. */
export const WAIT_MS = 15_001

export function object(name: string, resourceVersion: string): ApiObject {
  return { metadata: { name, resourceVersion } }
}

function nameOf({ metadata }: ApiObject): string {
  return (metadata as { name: string }).name
}

export class Stage {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  /** The calls of the sink, in order. */
  readonly calls: string[] = []
  readonly watch: ListWatch
  /** Thrown by the next `apply`. */
  fault: Error | undefined
  readonly ended: Promise<void>

  constructor(
    t: Test,
    namespace = '',
    streamsLists = false,
    equalVersions: readonly string[] = [],
  ) {
    this.api.streamsLists = streamsLists
    this.watch = new ListWatch({
      api: this.api,
      resource: RESOURCE,
      equalVersions,
      namespace,
      labelSelector: 'a-label',
      sink: {
        beginList: () => this.calls.push('begin'),
        put: (objects) => this.calls.push(`put ${objects.map(nameOf).join()}`),
        endList: () => this.calls.push('end'),
        apply: (events) => this.#apply(events),
      },
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
      onProgress: () => {},
    })
    this.ended = this.watch.run()
    t.teardown(() => this.watch.close())
  }

  #apply(events: readonly WatchEvent[]): void {
    const { fault } = this
    this.fault = undefined
    if (fault !== undefined) throw fault
    this.calls.push(events.map((e) => `${e.isDeleted ? '-' : '+'}${nameOf(e.object)}`).join(' '))
  }

  /** The calls since the last time. */
  async heard(): Promise<string[]> {
    await turns()
    await this.advance(10)
    return this.calls.splice(0)
  }

  async advance(milliseconds: number): Promise<void> {
    this.clock.monotonicMs += milliseconds
    await this.timers.advance(milliseconds)
    await turns()
  }

  /** The next request, which there must be without any waiting. */
  async asked(): Promise<Asked> {
    await turns()
    if (this.api.asked.length === 0) throw new Error('nothing was asked')
    return this.api.next()
  }

  /** Answers the request for the API's version, which follows an outage, and returns the next request. */
  async verified(version = '1000'): Promise<Asked> {
    const asked = await this.asked()
    if (asked.isWatch || asked.query.get('limit') !== '1') throw new Error('it was not asked')
    asked.reply(200, listBody(version, [], 'more'))
    return this.asked()
  }

  /** Answers the first list with nothing and lets the watch begin. */
  async synced(version = '10'): Promise<Stream> {
    ;(await this.asked()).reply(200, listBody(version, []))
    const stream = (await this.asked()).stream()
    await this.heard()
    return stream
  }
}
