/** A simulated site. */
interface PartitionSite {
  /** Its nameserver answers. */
  isUp: boolean
  /** Its application answers. */
  isGatewayUp: boolean
  /** Starts it again; `keeps`: with what it had before. */
  start(keeps: boolean): void
}

/** A simulated network of sites. */
interface PartitionNetwork {
  readonly sites: readonly PartitionSite[]
  readonly numbers: readonly number[]
  setLink(from: number, to: number, isUp: boolean, of?: 'both' | 'queries' | 'probes'): void
  setPair(one: number, other: number, isUp: boolean): void
  setSite(number: number, isUp: boolean): void
  heal(): void
}

/** The partition table of docs/explanation/health.md: what the clients of each site get. `last`: the site with the fault. */
export interface PartitionRow {
  readonly fault: string
  readonly begin: (network: PartitionNetwork, last: number) => void
  readonly end: (network: PartitionNetwork, last: number) => void
  /** Sites whose addresses are served, by site that answers; missing = the site answers as before. */
  readonly two: Readonly<Record<number, readonly number[]>>
  readonly three: Readonly<Record<number, readonly number[]>>
}

const stop = (site: PartitionSite): void => {
  site.isUp = false
}
export const PARTITIONS: readonly PartitionRow[] = [
  {
    fault: 'the DNS of a site dies',
    begin: ({ sites }, last) => stop(sites[last]!),
    end: ({ sites }, last) => sites[last]!.start(true),
    two: {},
    three: {},
  },
  {
    fault: 'the application of a site dies',
    begin: ({ sites }, last) => (sites[last]!.isGatewayUp = false),
    end: ({ sites }, last) => (sites[last]!.isGatewayUp = true),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  {
    fault: 'both die',
    begin: ({ sites }, last) => {
      stop(sites[last]!)
      sites[last]!.isGatewayUp = false
    },
    end: ({ sites }, last) => {
      sites[last]!.isGatewayUp = true
      sites[last]!.start(false)
    },
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
  {
    fault: 'the link between two sites breaks',
    begin: (network, last) => network.setPair(0, last, false),
    end: (network) => network.heal(),
    two: { 0: [0], 1: [1] },
    three: {},
  },
  {
    fault: 'one direction of it breaks',
    begin: (network, last) => network.setLink(0, last, false),
    end: (network) => network.heal(),
    two: { 0: [0] },
    three: {},
  },
  {
    fault: 'a site is cut from all others',
    begin: (network, last) => network.setSite(last, false),
    end: (network) => network.heal(),
    two: { 0: [0], 1: [1] },
    three: { 0: [0, 1], 1: [0, 1], 2: [2] },
  },
  {
    fault: 'the gateway of a site is out of reach of all others, which hear the site',
    begin: (network, last) => {
      for (const from of network.numbers) network.setLink(from, last, false, 'probes')
    },
    end: (network) => network.heal(),
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
]
