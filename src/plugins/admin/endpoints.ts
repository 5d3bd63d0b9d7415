import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import type { EndpointHistory } from '../../base/telemetry/endpoint-history.ts'
import type {
  EndpointLists,
  EndpointPage,
  EndpointQuery,
} from '../../base/telemetry/endpoint-lists.ts'
import type { AdminHealth } from '../../plugin/admin-health.ts'
import { Turns } from './turns.ts'

interface EndpointSources {
  readonly history: { readonly item: EndpointHistory }
  readonly lists: { readonly item: EndpointLists }
}

/** The endpoints of all publishers of the process. */
export class Endpoints implements AdminHealth {
  readonly #sources: () => EndpointSources | undefined
  readonly #clock: Clock
  readonly #turns = new Turns()

  /** `sources`: undefined before the start. */
  constructor(sources: () => EndpointSources | undefined, clock: Clock) {
    this.#sources = sources
    this.#clock = clock
  }

  list(query: EndpointQuery): Promise<EndpointPage | undefined> {
    return this.#turns.run(async () => {
      const sources = this.#sources()
      if (sources === undefined) return undefined
      const { history, lists } = sources
      const pages = lists.item.select(query, history.item, this.#clock.now())
      return runInSlices(pages, this.#clock)
    })
  }
}
