import type { FailOverSites } from './fail-over-sites.ts'
import type { Served } from './settle.ts'

/** A row of the partition table in docs/explanation/health.md. `last`: the site with the fault. */
export interface Row {
  readonly fault: string
  readonly begin: (of: FailOverSites, last: number) => Promise<void>
  readonly end: (of: FailOverSites, last: number) => Promise<void>
  readonly two: Served
  readonly three: Served
  /** The nameserver of the site does not answer. */
  readonly endsDns?: boolean
}

const heal = ({ sites }: FailOverSites, last: number): Promise<void> => sites[last]!.heal()

export const ROWS: readonly Row[] = [
  {
    fault: 'the DNS of a site dies',
    begin: ({ sites }, last) => sites[last]!.killServer(),
    end: async ({ sites }, last) => sites[last]!.startServer(),
    two: {},
    three: {},
    endsDns: true,
  },
  {
    fault: 'the application of a site dies',
    begin: ({ sites }, last) => sites[last]!.killGateway(),
    end: ({ sites }, last) => sites[last]!.startGateway(),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  {
    fault: 'both die',
    begin: async ({ sites }, last) => {
      await sites[last]!.killServer()
      await sites[last]!.killGateway()
    },
    end: async ({ sites }, last) => {
      await sites[last]!.start()
    },
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
    endsDns: true,
  },
  {
    fault: 'the link between two sites breaks',
    begin: ({ sites }, last) => sites[last]!.cut([0]),
    end: heal,
    two: { 0: [0], 1: [1] },
    three: {},
  },
  {
    fault: 'one direction of it breaks',
    begin: ({ sites }, last) => sites[last]!.refuse(0),
    end: heal,
    two: { 0: [0] },
    three: {},
  },
  {
    fault: 'a site is cut from all others',
    begin: ({ sites }, last) => {
      return sites[last]!.cut(sites.slice(0, last).map(({ number }) => number))
    },
    end: heal,
    two: { 0: [0], 1: [1] },
    three: { 0: [0, 1], 1: [0, 1], 2: [2] },
  },
  {
    fault: 'no other site reaches the gateway of a site',
    begin: ({ sites }, last) => sites[last]!.hideGateway(),
    end: heal,
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
]
