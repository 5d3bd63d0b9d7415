import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import type { CheckHook } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { RecordsInSharedMemory } from '../../zone/zonefile/records-in-shared-memory.ts'
import { Hosts } from './hosts.ts'
import { HostsFile } from './hosts-file.ts'

const RELOAD_MS_DEFAULT = 5000
const TTL_DEFAULT = 3600
const TTL_MAX = 65535

interface HostsConfig {
  path: string
  /** Position of the line that names the file. */
  position: Position
  zones: readonly Uint8Array[]
  readonly inline: string[]
  ttlSeconds: number
  reverse: boolean
  reloadMs: number
  fallthrough: Fallthrough
  fallthroughUnsupported: boolean
}

/** `hosts [FILE [ZONES...]] { … }`: A, AAAA and PTR from a hosts file. */
export const hosts: Directive = {
  name: 'hosts',
  setup: (c) => {
    const config = scanConfig(c)
    const source: { records: RecordsInSharedMemory | undefined } = { records: undefined }
    const broadcast = c.broadcast<RecordsInSharedMemory>((records) => {
      source.records = records
    })
    const file = new HostsFile({
      ...config,
      clock: c.clock,
      log: c.log,
      serve: (records) => {
        source.records = records
        broadcast.publish(records)
      },
      onLoad: gauges(c, config),
    })
    const serving = { ...config, zones: new ZoneSet(config.zones) }
    const check: CheckHook = async ({ warn, read }) => {
      const { position, path } = config
      const isRead = await file.check((text) => {
        warn(new InputError(position, text))
      })
      const records = source.records?.type.length ?? 0
      if (isRead) read(`${path}: ${plural(records, 'record')}, with the lines of the Corefile`)
      return []
    }
    const problems = (): ProblemGroup[] => {
      const { path } = config
      const { fault } = file
      if (fault === '') return []
      const reason = `${fault}; the last valid entries are served`
      return [oneProblem('hosts-file', path, { place: path, object: path, reason })]
    }
    let stop: (() => void) | undefined
    const start = async (): Promise<void> => {
      await file.load()
      if (config.reloadMs === 0) return
      const guarded = guarding(c.log, `Reloading ${config.path}`)
      stop = c.timers.every(config.reloadMs, () => void guarded(() => file.reload()))
    }
    return {
      handler: (next) => new Hosts(next, source, serving),
      answers: true,
      check,
      problems,
      offline: async ({ answers }) => {
        if (answers) await file.load()
      },
      start,
      stop: () => {
        stop?.()
        file.stop()
      },
    }
  },
}

function gauges(c: SetupContext, config: HostsConfig) {
  const entriesGauge = c.metrics.gauge(
    'coredns_hosts_entries',
    'The combined number of entries in hosts and Corefile.',
    ['hostsfile'],
  )
  const reloadGauge = c.metrics.gauge(
    'coredns_hosts_reload_timestamp_seconds',
    'The timestamp of the last reload of hosts file.',
  )
  return (entries: number, modifiedSeconds: number): void => {
    entriesGauge.set({ hostsfile: config.path }, entries)
    if (modifiedSeconds > 0) reloadGauge.set(modifiedSeconds)
  }
}

function scanConfig(c: SetupContext): HostsConfig {
  const d = c.dispenser
  const config: HostsConfig = {
    path: '/etc/hosts',
    position: d.position(),
    zones: [],
    inline: [],
    ttlSeconds: TTL_DEFAULT,
    reverse: true,
    reloadMs: RELOAD_MS_DEFAULT,
    fallthrough: NO_FALLTHROUGH,
    fallthroughUnsupported: false,
  }
  for (let occurrences = 0; nextOnce(d, occurrences); occurrences++) {
    const [path, ...zones] = d.remainingArgs()
    config.position = d.position()
    if (path !== undefined) config.path = resolve(c.block.root, path)
    config.zones = scanAnsweredZones(d, zones, c)
    d.eachProperty(() => scanProperty(d, config))
    if (config.fallthroughUnsupported && config.fallthrough === NO_FALLTHROUGH) {
      throw d.error('fallthrough_unsupported requires fallthrough')
    }
  }
  return config
}

const PROPERTIES = ['fallthrough', 'fallthrough_unsupported', 'no_reverse', 'ttl', 'reload']

function scanProperty(d: Dispenser, config: HostsConfig): void {
  switch (d.value()) {
    case 'fallthrough':
      config.fallthrough = scanFallthrough(d)
      return
    case 'fallthrough_unsupported':
      if (d.nextArg()) throw d.argError()
      config.fallthroughUnsupported = true
      return
    case 'no_reverse':
      config.reverse = false
      return
    case 'ttl':
      config.ttlSeconds = scanTtlSeconds(d)
      return
    case 'reload':
      config.reloadMs = scanReload(d)
      return
    default:
      // After `fallthrough`, CoreDNS accepts no more lines of hosts.
      if (config.fallthrough !== NO_FALLTHROUGH) throw d.unknownProperty(d.value(), PROPERTIES)
      config.inline.push([d.value(), ...d.remainingArgs()].join(' '))
  }
}

function scanTtlSeconds(d: Dispenser): number {
  const text = d.remainingArgs()[0]
  if (text === undefined) throw d.error('ttl needs a time in second')
  if (!/^[+-]?\d{1,18}$/.test(text)) throw d.error('ttl needs a number of second')
  const ttlSeconds = Number(text)
  if (ttlSeconds <= 0 || ttlSeconds > TTL_MAX) throw d.error('ttl provided is invalid')
  return ttlSeconds
}

function scanReload(d: Dispenser): number {
  const args = d.remainingArgs()
  if (args.length !== 1) throw d.error('reload needs a duration (zero seconds to disable)')
  const reloadMs = scanDuration(args[0]!)
  if (reloadMs !== undefined && reloadMs >= 0) return reloadMs
  throw d.error(`invalid duration for reload '${args[0]}'`)
}
