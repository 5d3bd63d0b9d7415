import { FileZones } from '../../authority/file-zones.ts'
import { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { InputError, type Position } from '../../base/errors.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import { AddressSet } from '../../dns/text/address-set.ts'
import { TSIG_KEYS } from '../../dns/tsig/key.ts'
import {
  hostNetwork,
  ownAddress,
  scanEndpoint,
  scanSource,
} from '../../plugin/arguments/endpoint.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { missingKey, scanKeyName } from '../../plugin/arguments/key-name.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { findLoops } from '../../plugin/own-blocks.ts'
import { WORK_SPANS } from '../../plugin/work-spans.ts'
import { Secondary, scanNotice } from './secondary.ts'
import { SecondaryZone } from './secondary-zone.ts'
import { TransferSlots } from './transfer-slots.ts'

/** The primaries of a zone, and how to query them. */
interface SecondaryConfig {
  readonly zone: Uint8Array
  readonly primaries: readonly HostPort[]
  readonly source: string
  readonly keyName: Uint8Array | undefined
  readonly position: Position
}

/**
 * `secondary [ZONES...] { transfer from ADDR... }`: zones that are transferred from other servers.
 */
export const secondary: Directive = { name: 'secondary', setup }

function setup(c: SetupContext): Description {
  const { block, clock, timers, random, log } = c
  const { configs, fallthrough } = scanConfig(c)
  const served = new ThreadedFileZones(c, 'secondary')
  const slots = new TransferSlots()
  const { transfers, notifies } = createCounters(c.metrics)
  const zones: readonly SecondaryZone[] = configs.map(({ zone, primaries, source, keyName }) => {
    return new SecondaryZone({
      resources: c.resources,
      zone,
      primaries,
      place: placeOf(block),
      sourceFor: (primary) => (source === '' ? ownAddress(primary.host, block) : source),
      key: () =>
        keyName === undefined ? undefined : block.shared.acquire(TSIG_KEYS).find(keyName),
      nsInAuthority: served.nsInAuthority,
      clock,
      timers,
      log,
      random,
      onTransfer: (result) => transfers.inc({ result }),
      spans: () => block.shared.find(WORK_SPANS),
      onChange: () => served.publish(zones),
      queue: (hostOf, transfer) => slots.run(hostOf, transfer),
    })
  })
  served.publish(zones)
  block.takesNotify = true
  const report = c.toControl((text) => {
    const { index, serial, host } = scanNotice(text)
    notifies.inc()
    zones[index]?.notify(host, serial)
  })
  const notified = configs.map(({ zone, primaries, keyName }) => {
    return { zone, keyName, primaries: new AddressSet(primaries.map(hostNetwork)) }
  })
  const options = { name: 'secondary', table: served.table, fallthrough }
  const handler = (next: Handler): Handler => {
    return new Secondary(new FileZones(next, options), notified, report)
  }
  const findFaults = (): InputError[] => findMissingKeys(c, configs)
  const part: DirectivePart = {
    handler,
    seesNotify: true,
    answers: true,
    problems: () => [groupOf(zones, placeOf(block))],
    check: async ({ warn }) => {
      for (const loop of await findOwn(c, configs)) warn(loop)
      return findFaults()
    },
    offline: () => {
      for (const zone of zones) zone.isElsewhere = true
      served.publish(zones)
    },
    start: async () => {
      for (const fault of findFaults()) throw fault
      for (const loop of await findOwn(c, configs)) log.warning(loop.print(), 'secondary-loop')
      for (const zone of zones) zone.adopt()
      served.publish(zones)
      for (const zone of zones) zone.start()
    },
    stop: () => {
      for (const zone of zones) zone.stop()
    },
  }
  return [served.part, part]
}

function findMissingKeys(
  { block }: SetupContext,
  configs: readonly SecondaryConfig[],
): InputError[] {
  return configs.flatMap(({ keyName, position }) => {
    return missingKey(keyName, block, (text) => new InputError(position, text))
  })
}

/** Finds primaries that are this server block. */
async function findOwn(
  c: SetupContext,
  configs: readonly SecondaryConfig[],
): Promise<InputError[]> {
  const found = configs.map(({ zone, primaries, position }) => {
    return findLoops(c, primaries, [zone], { what: `secondary ${printName(zone)}`, position })
  })
  return (await Promise.all(found)).flat()
}

function groupOf(zones: readonly SecondaryZone[], of: string): ProblemGroup {
  const problems = zones
    .filter(({ fault }) => fault !== '')
    .map(({ zoneText, fault }) => ({ place: '', object: `zone ${zoneText}`, reason: fault }))
  return { kind: 'secondary-zone', of, count: problems.length, problems }
}

function createCounters(metrics: SetupContext['metrics']) {
  const help = 'Queries to primaries, by the kind of transfer or the failure.'
  const transfers = metrics.counter('coredns_secondary_transfers_total', help, ['result'])
  const notifies = metrics.counter('coredns_secondary_notifies_total', 'NOTIFYs of primaries.')
  return { transfers, notifies }
}

function scanConfig(c: SetupContext): {
  configs: SecondaryConfig[]
  fallthrough: Fallthrough
} {
  const d = c.dispenser
  const configs: SecondaryConfig[] = []
  let fallthrough = NO_FALLTHROUGH
  while (d.next()) {
    const position = d.position()
    const zones = scanAnsweredZones(d, d.remainingArgs(), c)
    const primaries: HostPort[] = []
    let source = ''
    let keyName: Uint8Array | undefined
    d.eachProperty(() => {
      if (d.value() === 'transfer') primaries.push(...scanPrimaries(d))
      else if (d.value() === 'source') source = scanSource(d, source)
      else if (d.value() === 'key') keyName = scanKeyName(d)
      else if (d.value() === 'fallthrough') fallthrough = scanFallthrough(d)
      else if (d.value() === 'catalog') {
        throw d.error('catalog zones are not supported by this version of Sextant')
      } else throw d.unknownProperty(d.value(), ['transfer', 'source', 'key', 'fallthrough'])
    })
    if (primaries.length === 0) throw d.error('missing primary; write `transfer from ADDR...`')
    for (const zone of zones) {
      if (configs.some((other) => equalNames(other.zone, zone))) {
        throw d.error(`the zone ${printName(zone)} appears twice; remove one`)
      }
      configs.push({ zone, primaries, source, keyName, position })
    }
  }
  return { configs, fallthrough }
}

function scanPrimaries(d: Dispenser): HostPort[] {
  const [from, ...addresses] = d.remainingArgs()
  if (from !== 'from' || addresses.length === 0) {
    throw d.error('transfer needs `from` and the addresses of primaries')
  }
  return addresses.map((text) => scanEndpoint(d, text))
}
