import { countUnlisted } from '../base/telemetry/problems.ts'
import type { QuorumAddress, QuorumReport, ServerStatus } from '../base/telemetry/status.ts'
import { keyTable } from './key-table.ts'
import { align, type Row, tableOf } from './table.ts'
import { type Line, type Tone, type Toned, toned } from './tones.ts'

const MINUTE_SECONDS = 60
const HOUR_SECONDS = 3600
const DAY_SECONDS = 86_400

/** The tones of the states of endpoints, peers, sites and shifts. */
const TONES: Readonly<Record<string, Tone>> = {
  ...{ down: 'bad', silent: 'bad', isolated: 'bad', 'never heard': 'bad', reverted: 'bad' },
  ...{ drained: 'warning', 'partly down': 'warning', 'slow start': 'warning', running: 'warning' },
  ...{ up: 'good', heard: 'good', 'this site': 'good', finished: 'good' },
}

function printState(state: string): Toned | string {
  const tone = TONES[state]
  return tone === undefined ? state : toned(tone, state)
}

/** Prints a status as tables for people. `isWide`: with columns that few readers need. */
export function printStatus(status: ServerStatus, isWide: boolean): Line[] {
  return [
    ...printServer(status),
    ...printProblems(status),
    ...printTable('ZONE SERIAL RECORDS RRSETS SERVED STANDBY SLOW DOWN DRAINED CONFLICTS SOURCE', [
      ...status.zones.map(({ zone, serial, records, rrsets, conflicts, endpoints, ...from }) => {
        const {
          served = null,
          standby = null,
          slowStart = null,
          down = null,
          drained = null,
        } = endpoints ?? {}
        const counts = [records, rrsets, served, standby, slowStart, down, drained, conflicts]
        return [zone, serial, ...counts, `${from.directive} ${from.source}`.trim()]
      }),
    ]),
    ...printTable('SIGNED DENIAL POLICY MADE REUSED EXPIRES FAULT', [
      ...(status.signing ?? []).map(
        ({ zone, denial, policy, made, reused, expires, fault }): Row => {
          return [zone, denial, policy, made, reused, expires, toned('bad', fault)]
        },
      ),
    ]),
    ...(status.keys?.length ? ['', ...keyTable(status.keys, isWide)] : []),
    ...printOut(status),
    ...printTable(`${isWide ? 'ZONE ' : ''}NAME TYPE SET STATE TARGETS RECORD DETAIL`, [
      ...status.endpoints.map(({ zone, name, type, setIdentifier, state, targets, ...of }): Row => {
        const { record, detail } = of
        const cells = [name, type, setIdentifier, printState(state), targets.join(' ')]
        return [...(isWide ? [zone] : []), ...cells, record, detail]
      }),
    ]),
    ...(status.endpointsOmitted > 0 ? [`and ${status.endpointsOmitted} more endpoints`] : []),
    ...peerLines(status, isWide),
    ...printTable('RECORD SHIFT STATE STEP SHARE UNTIL REASON', [
      ...(status.shifts ?? []).map(({ record, records, to, state, step, steps, ...at }): Row => {
        const others = records > 1 ? ` and ${records - 1} more` : ''
        const share = at.share === null ? null : `${at.share} %`
        return [
          record + others,
          to,
          printState(state),
          `${step} of ${steps}`,
          share,
          at.until,
          at.reason,
        ]
      }),
    ]),
    ...(status.shiftsOmitted > 0 ? [`and ${status.shiftsOmitted} more shifts`] : []),
    ...printTable('DATABASE BUILT AGE FAULT', [
      ...status.databases.map(({ file, built, fault }): Row => {
        const ageSeconds = built === '' ? null : secondsBetween(built, status.now)
        return [file, built, printAge(ageSeconds, ''), toned('bad', fault)]
      }),
    ]),
    ...printTable('SNAPSHOT SERVED AGE OCTETS', [
      ...status.snapshots.map(({ file, isServed, ageSeconds, octets }) => {
        return [file, isServed ? 'yes' : 'no', printAge(ageSeconds, ''), octets]
      }),
    ]),
  ]
}

/** Prints the peers of a status, and how they agree on health, as tables for people. */
export function printPeers(status: ServerStatus, isWide: boolean): Line[] {
  const lines = peerLines(status, isWide)
  // Each part begins with an empty line.
  return lines.length === 0 ? ['the server has no peers'] : lines.slice(1)
}

function peerLines(status: ServerStatus, isWide: boolean): Line[] {
  return [
    ...printTable('PEER SITE STATE AGE SERIAL ENDPOINTS REFUSED ERROR', [
      ...status.peers.map(
        ({ peer, site, isUp, ageSeconds, serial, endpoints, refused, error }): Row => {
          const state = printState(isUp ? 'up' : 'silent')
          const age = printAge(ageSeconds, 'never')
          return [peer, site, state, age, serial, endpoints, refused, toned('bad', error)]
        },
      ),
    ]),
    ...(status.quorums ?? []).flatMap((quorum) => printQuorum(quorum, isWide)),
  ]
}

function printServer(status: ServerStatus): Line[] {
  const { version, pid, threads, corefile, started, now, notReady, notes } = status
  const lines: Row[] = [
    [
      'server',
      `Sextant ${version}, pid ${pid}, ${threads} threads, up ${printAge(secondsBetween(started, now), '')}`,
    ],
    ['Corefile', `${corefile.path || 'built in'}, loaded ${corefile.loaded}`],
    ['ready', notReady.length === 0 ? toned('good', 'yes') : toned('bad', 'no')],
    ...notReady.map(({ plugin, text }): Row => ['', `${plugin}: ${text}`]),
    ...printCounts('problems', status.problemCounts ?? {}),
    ...notes.map(({ plugin, text }): Row => ['note', `${plugin}: ${text}`]),
    ...printCounts('dropped', status.drops),
  ]
  return align(lines)
}

function printCounts(heading: string, counts: Readonly<Record<string, number>>): Row[] {
  const texts = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`)
  return texts.length === 0 ? [] : [[heading, texts.join(', ')]]
}

/** Servers of earlier versions report no problems. */
function printProblems({ problems = [], problemCounts = {} }: Partial<ServerStatus>): Line[] {
  const counts = Object.entries(problemCounts)
  return [
    ...printTable('PROBLEM PLACE REASON', [
      ...problems.map(({ kind, place, reason }): Row => [kind, place, reason]),
    ]),
    ...countUnlisted<string>(problems, counts).map(([kind, n]) => `and ${n} more: ${kind}`),
  ]
}

function printQuorum(report: QuorumReport, isWide: boolean): Line[] {
  const { zones, members, addresses, addressesOmitted, holdDownSeconds } = report
  const needed = `${report.heard} of ${report.sites} sites heard, quorum ${report.quorum}`
  const holdDown = `hold-down ${printAge(holdDownSeconds, '')}`
  return [
    '',
    `health of peers in ${zones.join(' ')}: ${needed}, ${holdDown}`,
    ...tableOf('SITE STATE AGE OBSERVATIONS DISPUTES PEERS'.split(' '), [
      ...members.map(({ site, state, ageSeconds, observations, peers }): Row => {
        const age = printAge(ageSeconds, 'never')
        const disputes = countDisputes(site, addresses)
        return [site, printState(state), age, observations, disputes, peers.join(' ')]
      }),
    ]),
    ...printTable(`HOST ADDRESS SITE UP DOWN DISPUTED${isWide ? ' HOLD-DOWN-UNTIL' : ''} REASON`, [
      ...addresses.map(({ host, address, sites, up, down, isDisputed, reason, ...of }): Row => {
        const lists = [sites, up, down].map((of) => of.join() || null)
        const disputed = isDisputed ? toned('warning', 'yes') : 'no'
        return [host, address, ...lists, disputed, ...(isWide ? [of.holdDownUntil] : []), reason]
      }),
    ]),
    ...(addressesOmitted > 0 ? [`and ${addressesOmitted} more addresses`] : []),
  ]
}

/** Counts the addresses about which a site contradicts what is decided. */
function countDisputes(site: string, addresses: readonly QuorumAddress[]): number {
  return addresses.filter(({ isDisputed, isDown, up, down }) => {
    return isDisputed && (isDown ? up : down).includes(site)
  }).length
}

function printOut({ zones }: ServerStatus): Line[] {
  const allDown = zones.flatMap((zone) => zone.allDown)
  const exhausted = zones.flatMap((zone) => zone.exhausted ?? [])
  return [
    ...printList('all endpoints are down or drained:', allDown),
    ...printList('all endpoints of failover lists are down or drained:', exhausted),
  ]
}

/** Returns an empty line and the list; nothing if it is empty. */
function printList(heading: string, texts: readonly string[]): Line[] {
  return texts.length === 0
    ? []
    : ['', [toned('bad', heading)], ...texts.map((text) => `  ${text}`)]
}

/** Returns an empty line and the table; nothing if there are no rows. */
function printTable(heading: string, rows: readonly Row[]): Line[] {
  return rows.length === 0 ? [] : ['', ...tableOf(heading.split(' '), rows)]
}

/** From one RFC 3339 time to a later one. */
function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000
}

/** `3 d 4 h`, `5 min 10 s`. `missing`: the text for null. */
function printAge(seconds: number | null, missing: string): string {
  if (seconds === null) return missing
  const whole = Math.max(0, Math.round(seconds))
  const units: readonly [number, string][] = [
    [DAY_SECONDS, 'd'],
    [HOUR_SECONDS, 'h'],
    [MINUTE_SECONDS, 'min'],
  ]
  const at = units.findIndex(([unit]) => whole >= unit)
  if (at === -1) return `${whole} s`
  const [unit, name] = units[at]!
  const [smaller, smallerName] = units[at + 1] ?? [1, 's']
  const rest = Math.floor((whole % unit) / smaller)
  return `${Math.floor(whole / unit)} ${name}${rest === 0 ? '' : ` ${rest} ${smallerName}`}`
}
