import type { FleetReport, FleetServer } from '../../../../../plugin/admin-fleet.ts'
import { printAge, printNumber } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { type ComparedZone, compareZones, nameOf } from './compare-zones.ts'
import './fleet.css'

export const id = 'fleet'
export const title = 'Fleet'

const FIRST_VIEW = 'overview'
const UNKNOWN = '-'

/** All servers that this server knows, and how they differ. */
export function View() {
  const { data, error } = usePolled<{ readonly servers: readonly FleetServer[] }>('/v1/fleet')
  const shown = useParameters().get('server')
  if (data === undefined)
    return <Message kind={error === '' ? 'info' : 'error'} text={error || 'Reading the servers…'} />
  const { servers } = data
  const down = servers.filter(({ state }) => state === 'down').map(nameOf)
  const zones = compareZones(servers)
  const different = zones.filter(({ state }) => state === 'different').map(({ zone }) => zone)
  return (
    <>
      <Message kind="error" text={error} />
      <Message kind="error" text={down.length === 0 ? '' : `Down: ${down.join(', ')}`} />
      <Message
        kind="warning"
        text={different.length === 0 ? '' : `Serials differ: ${different.join(', ')}`}
      />
      {servers.length === 1 && (
        <p>
          Add <code>server NAME URL</code> to the directive <code>admin</code> of the Corefile for
          each other server.
        </p>
      )}
      <Servers servers={servers} shown={shown} />
      <Zones zones={zones} />
      <Peers servers={servers} />
    </>
  )
}

interface ServersProps {
  readonly servers: readonly FleetServer[]
  /** The server whose views the page shows; '' = this one. */
  readonly shown: string
}

function Servers({ servers, shown }: ServersProps) {
  const of = (read: (report: FleetReport) => string | number | null) => {
    return ({ report }: FleetServer) => printable(String((report && read(report)) ?? UNKNOWN))
  }
  return (
    <Table
      caption="Servers"
      rows={servers}
      keyOf={({ name, address }) => `${name} ${address}`}
      attributesOf={({ name, state }) => ({ 'data-server': name, 'data-state': state })}
      columns={[
        {
          title: 'Server',
          cell: (server) => (
            <>
              {printable(nameOf(server))}
              <small class="fleet-address">{printable(server.address)}</small>
              <Open server={server} isShown={shown === (server.isSelf ? '' : server.name)} />
            </>
          ),
        },
        { title: 'State', cell: (server) => <State server={server} /> },
        { title: 'Age', cell: ({ ageSeconds }) => printAge(ageSeconds) },
        { title: 'Version', cell: of(({ version }) => version) },
        {
          title: 'Uptime',
          cell: of(({ uptimeSeconds }) =>
            uptimeSeconds === null ? null : printAge(uptimeSeconds),
          ),
        },
        { title: 'Problems', cell: of(printProblems) },
        {
          title: 'Queries/s',
          cell: of(({ queriesPerSecond }) => queriesPerSecond?.toFixed(1) ?? null),
          isNumber: true,
        },
        {
          title: 'Zones',
          cell: of((report) => countOf(report.zones, report.zonesOmitted)),
          isNumber: true,
        },
        { title: 'Peers up', cell: of(printPeers) },
        { title: 'Drains', cell: of(printDrains) },
      ]}
    />
  )
}

function Open({ server, isShown }: { readonly server: FleetServer; readonly isShown: boolean }) {
  if (isShown) return <small>The page shows its views.</small>
  const target = server.isSelf ? '' : server.name
  return (
    <Link view={FIRST_VIEW} parameters={{ server: target }}>
      Open the views of {printable(nameOf(server))}
    </Link>
  )
}

const STATES = { up: '✓ up', down: '✕ down', unread: '… not read yet' } as const

function State({ server: { state, error, report } }: { readonly server: FleetServer }) {
  const notReady = report?.notReady ?? []
  return (
    <>
      <span class={`fleet-${state}`}>{STATES[state] ?? printable(state)}</span>
      {error !== '' && <small class="fleet-reason">{printable(error)}</small>}
      {notReady.map((reason) => (
        <small key={reason} class="fleet-reason">
          not ready: {printable(reason)}
        </small>
      ))}
    </>
  )
}

function printProblems({ problemCounts }: FleetReport): string {
  const kinds = Object.entries(problemCounts).map(
    ([kind, count]) => `${printNumber(count)} ${kind}`,
  )
  return kinds.length === 0 ? 'none' : kinds.join(', ')
}

function printPeers({ peers, peersOmitted }: FleetReport): string {
  if (peers.length === 0) return UNKNOWN
  const up = peers.filter(({ isUp }) => isUp).length
  return `${up} of ${peers.length}${peersOmitted === 0 ? '' : ` (${peersOmitted} not listed)`}`
}

function printDrains({ drains, drainsOmitted }: FleetReport): string {
  if (drains === null) return 'unknown'
  const more = drainsOmitted === 0 ? [] : [`${printNumber(drainsOmitted)} more`]
  return [...drains, ...more].join('; ') || 'none'
}

function countOf(listed: readonly unknown[], omitted: number): string {
  return printNumber(listed.length + omitted)
}

const COMPARISONS = {
  same: '= same',
  different: '≠ different',
  counted: 'each server counts its own',
  'not loaded': '! not loaded everywhere',
} as const

function Zones({ zones }: { readonly zones: readonly ComparedZone[] }) {
  return (
    <Table
      caption="Zones"
      rows={zones}
      keyOf={({ zone }) => zone}
      attributesOf={({ zone, state }) => ({ 'data-zone': zone, 'data-state': state })}
      columns={[
        { title: 'Zone', cell: ({ zone }) => printable(zone) },
        { title: 'Directives', cell: ({ directives }) => printable(directives.join(', ')) },
        {
          title: 'Serials',
          cell: ({ state }) => (
            <span class={`fleet-zone-${state.replace(' ', '-')}`}>{COMPARISONS[state]}</span>
          ),
        },
        {
          title: 'By server',
          cell: ({ serials }) =>
            printable(
              serials
                .map(({ server, serial }) => `${server}: ${serial ?? 'not loaded'}`)
                .join(', '),
            ),
        },
        { title: 'Not served by', cell: ({ missing }) => printable(missing.join(', ') || UNKNOWN) },
      ]}
    />
  )
}

function Peers({ servers }: { readonly servers: readonly FleetServer[] }) {
  const rows = servers.flatMap((server) => {
    return (server.report?.peers ?? []).map((peer, i) => ({ ...peer, server: nameOf(server), i }))
  })
  if (rows.length === 0) return null
  return (
    <Table
      caption="Peers"
      rows={rows}
      keyOf={({ server, i }) => `${server} ${i}`}
      columns={[
        { title: 'Server', cell: ({ server }) => printable(server) },
        { title: 'Its peer', cell: ({ peer }) => printable(peer) },
        { title: 'Site', cell: ({ site }) => printable(site || UNKNOWN) },
        {
          title: 'State',
          cell: ({ isUp }) => (
            <span class={isUp ? 'fleet-up' : 'fleet-down'}>{isUp ? STATES.up : STATES.down}</span>
          ),
        },
        { title: 'Last confirmed', cell: ({ ageSeconds }) => printAge(ageSeconds) },
      ]}
    />
  )
}
