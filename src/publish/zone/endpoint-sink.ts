/** Identifies an endpoint in a tier of a name and type. */
export interface EndpointLabels {
  readonly source: string
  readonly zone: string
  /** As in a zone file; `other` = all endpoints without a series of their own. */
  readonly owner: string
  readonly type: string
  readonly endpoint: string
  readonly tier: string
}

/** How much of its tier an endpoint should have. */
export interface EndpointShare {
  /** 0 to 1. */
  readonly share: number
  /** Undefined = it has none, or several endpoints answer together. */
  readonly weight: number | undefined
}

/** Accepts what is counted of endpoints. `key`: `seriesKey` of the labels. */
export interface EndpointSink {
  /** Adds a user of the series. */
  add(key: string, labels: EndpointLabels): void
  /** Removes a user; the last one removes the series. */
  remove(key: string, labels: EndpointLabels): void
  count(key: string, labels: EndpointLabels, growth: number): void
  setShare(key: string, labels: EndpointLabels, share: EndpointShare): void
  /** Calls `collect` before the counts are read. Returns the function that ends this. */
  onCollect(collect: () => void): () => void
}

export function seriesKey({ source, zone, owner, type, endpoint, tier }: EndpointLabels): string {
  return JSON.stringify([source, zone, owner, type, endpoint, tier])
}
