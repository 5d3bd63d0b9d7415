import type {
  PeerReport,
  QuorumMember,
  QuorumReport,
  ShiftReport,
} from '../../../../../base/telemetry/status.ts'
import type { AdminDrain, DrainList } from '../../../../../plugin/admin-drains.ts'
import { printAge, printNumber, printTime } from '../../shell/format.ts'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { useStatus } from '../../shell/status.ts'
import { Table } from '../../shell/table.tsx'
import { usePolled } from '../../shell/use-polled.ts'

const DRAINS_MS = 10_000

/** What takes endpoints out, beside their own health. */
export function Sections() {
  const { data: status } = useStatus()
  const drains = usePolled<DrainList>('/v1/drains', DRAINS_MS)
  if (status === undefined) return null
  return (
    <>
      <h2>Sites</h2>
      {status.quorums.length === 0 && (
        <p class="empty">
          No block has <code>probe-peers</code>.
        </p>
      )}
      {status.quorums.map((quorum) => (
        <Quorum key={quorum.zones.join(' ')} quorum={quorum} />
      ))}
      <Peers peers={status.peers} />
      <h2>Drains and shifts</h2>
      <Message kind="error" text={drains.error} />
      <Drains drains={drains.data?.drains ?? []} />
      <Omitted count={drains.data?.drainsOmitted ?? 0} what="drains" />
      <Shifts shifts={status.shifts} />
      <Omitted count={status.shiftsOmitted} what="shifts" />
    </>
  )
}

export function Omitted({ count, what }: { readonly count: number; readonly what: string }) {
  return count === 0 ? null : <p>{`${printNumber(count)} more ${what} are not shown.`}</p>
}

function Quorum({ quorum }: { readonly quorum: QuorumReport }) {
  const { zones, heard, sites, quorum: needed, holdDownSeconds } = quorum
  const of = printable(zones.join(', '))
  return (
    <>
      <p>
        {of}: {heard} of {sites} sites are heard. {needed} must find an address down, for{' '}
        {printAge(holdDownSeconds)}.
      </p>
      <Message kind="warning" text={warningOf(quorum)} />
      <Members members={quorum.members} of={of} />
      <Addresses quorum={quorum} of={of} />
      <Omitted count={quorum.addressesOmitted} what="addresses" />
    </>
  )
}

function warningOf({ isIsolated, heard, quorum }: QuorumReport): string {
  if (!isIsolated) return ''
  const effect =
    heard < quorum
      ? 'addresses of other sites keep their last health'
      : 'its own checks decide about addresses of other sites'
  return `This site is isolated: ${effect}.`
}

function isSilent({ state }: QuorumMember): boolean {
  return state === 'silent' || state === 'never heard'
}

interface MembersProps {
  readonly members: readonly QuorumMember[]
  readonly of: string
}

function Members({ members, of }: MembersProps) {
  return (
    <Table
      caption={`Sites of ${of}`}
      rows={members}
      keyOf={({ site, peers }) => `${site} ${peers.join(' ')}`}
      columns={[
        { title: 'Site', cell: ({ site }) => printable(site) },
        { title: 'State', cell: ({ state }) => printable(state) },
        { title: 'Last heard', cell: (one) => ageOf(one.ageSeconds, isSilent(one)) },
        { title: 'Nameservers', cell: ({ peers }) => printable(peers.join(', ')) || '-' },
        {
          title: 'Observed addresses',
          cell: ({ observations }) => printNumber(observations),
          isNumber: true,
        },
      ]}
    />
  )
}

interface AddressesProps {
  readonly quorum: QuorumReport
  readonly of: string
}

function Addresses({ quorum: { addresses, members }, of }: AddressesProps) {
  const silent = new Set(members.filter(isSilent).map(({ site }) => site))
  const names = (sites: readonly string[]): string => {
    const marked = sites.map((site) => (silent.has(site) ? `${site} (silent)` : site))
    return printable(marked.join(', ')) || 'none'
  }
  return (
    <Table
      caption={`Addresses that a site of ${of} finds down`}
      rows={addresses}
      keyOf={({ host, address }) => `${host} ${address}`}
      columns={[
        { title: 'Address', cell: ({ address, host }) => printable(`${address} of ${host}`) },
        { title: 'Its sites', cell: ({ sites }) => names(sites) },
        {
          title: 'Decision',
          cell: ({ isDown, isDisputed }) =>
            `${isDown ? 'down' : 'served'}${isDisputed ? ', disputed' : ''}`,
        },
        { title: 'Find it down', cell: ({ down }) => names(down) },
        { title: 'Find it up', cell: ({ up }) => names(up) },
        {
          title: 'Hold-down until',
          cell: ({ holdDownUntil }) => (holdDownUntil === null ? '-' : printTime(holdDownUntil)),
        },
        { title: 'Reason', cell: ({ reason }) => printable(reason) },
      ]}
    />
  )
}

function Peers({ peers }: { readonly peers: readonly PeerReport[] }) {
  return (
    <Table
      caption="Peers"
      rows={peers}
      keyOf={({ peer }) => peer}
      empty="The server has no peers."
      columns={[
        { title: 'Peer', cell: ({ peer }) => printable(peer) },
        { title: 'Site', cell: ({ site }) => printable(site) || 'unknown' },
        {
          title: 'State',
          cell: ({ isUp, error }) =>
            isUp ? 'answers' : printable(`does not answer${error && `: ${error}`}`),
        },
        { title: 'Age of its data', cell: ({ ageSeconds, isUp }) => ageOf(ageSeconds, !isUp) },
        { title: 'Serial', cell: ({ serial }) => serial ?? 'unknown', isNumber: true },
        { title: 'Endpoints', cell: ({ endpoints }) => printNumber(endpoints), isNumber: true },
        { title: 'Refused', cell: ({ refused }) => printNumber(refused), isNumber: true },
      ]}
    />
  )
}

function Drains({ drains }: { readonly drains: readonly AdminDrain[] }) {
  const timeOf = (time: string | undefined, missing: string): string => {
    return time === undefined ? missing : printTime(time)
  }
  return (
    <Table
      caption="Drains in force"
      rows={drains}
      keyOf={({ id, file, actor, reason }) => `${id} ${file} ${actor} ${reason}`}
      empty="Nothing is drained."
      columns={[
        { title: 'Selector', cell: ({ selector }) => printable(selector) },
        { title: 'Reason', cell: ({ reason }) => printable(reason) || '-' },
        { title: 'By', cell: ({ actor }) => printable(actor) || 'unknown' },
        { title: 'From', cell: ({ created }) => timeOf(created, 'unknown') },
        { title: 'Until', cell: ({ until }) => timeOf(until, 'ended by a person') },
        { title: 'File', cell: ({ file }) => printable(file) || 'annotation or group' },
      ]}
    />
  )
}

function Shifts({ shifts }: { readonly shifts: readonly ShiftReport[] }) {
  return (
    <Table
      caption="Shifts of traffic"
      rows={shifts}
      keyOf={({ record, to }) => `${record} ${to}`}
      empty="No traffic is shifted."
      columns={[
        { title: 'Record', cell: recordsOf },
        { title: 'To', cell: ({ to }) => printable(to) },
        { title: 'State', cell: ({ state }) => printable(state) },
        { title: 'Step', cell: ({ step, steps }) => `${step} of ${steps}` },
        {
          title: 'Share',
          cell: ({ share }) => (share === null ? 'weights apply' : `${share} %`),
          isNumber: true,
        },
        { title: 'Until', cell: ({ until }) => (until === null ? 'over' : printTime(until)) },
        { title: 'Reason', cell: ({ reason }) => printable(reason) || '-' },
      ]}
    />
  )
}

function recordsOf({ record, records }: ShiftReport): string {
  return printable(record) + (records > 1 ? ` and ${printNumber(records - 1)} more` : '')
}

/** An old age is marked in words. */
function ageOf(seconds: number | null, isStale: boolean): string {
  return isStale ? `${printAge(seconds)} (stale)` : printAge(seconds)
}
