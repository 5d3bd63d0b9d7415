import { InputError } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printName } from '../../dns/name/name.ts'
import { type Cidr, printAddress, scanCidr } from '../../dns/text/address.ts'
import { AddressSet, ALL_ADDRESSES } from '../../dns/text/address-set.ts'
import { TSIG_KEYS } from '../../dns/tsig/key.ts'
import {
  hostNetwork,
  ownAddress,
  scanEndpoint,
  scanSource,
} from '../../plugin/arguments/endpoint.ts'
import { missingKey, scanKeyName } from '../../plugin/arguments/key-name.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import type { BlockConfig, Directive } from '../../plugin/directive.ts'
import type { ZoneVersion } from '../../xfr/journal/version-view.ts'
import { ZONE_VERSIONS } from '../../xfr/zone-versions.ts'
import { Histories } from './histories.ts'
import { TransferMetrics } from './metrics.ts'
import { Notifier } from './notifier.ts'
import { type NotifyTarget, type TransferRule, TransferRules } from './rules.ts'
import { type FinishedTransfer, Transfer } from './transfer.ts'

/** `transfer [ZONES...] { to ADDR... }`: sends zones whole or as differences. */
export const transfer: Directive = {
  name: 'transfer',
  setup: (c) => {
    const { clock, timers, log, block } = c
    const found: { rule: TransferRule; fault: (message: string) => InputError }[] = []
    while (c.dispenser.next()) found.push(scanRule(c.dispenser, block))
    const rules = new TransferRules(found.map(({ rule }) => rule))
    const metrics = new TransferMetrics(c.metrics)
    const notifier = new Notifier({ clock, timers, log, ...metrics.notifies })
    let isServing = false
    const notify = (version: ZoneVersion): void => {
      if (isServing) notifyAll(notifier, rules, version, block)
    }
    const covers = (zone: Uint8Array): boolean => rules.ruleOf(zone) !== undefined
    const histories = new Histories(block.shared.acquire(ZONE_VERSIONS), clock, covers, notify, log)
    const onEnd = (transfer: FinishedTransfer): void => {
      metrics.count(transfer)
      if (transfer.fault === '') log.info(printTransfer(transfer), 'transfer-sent')
      else log.error(printTransfer(transfer), 'transfer-sent')
    }
    const onRefused = (): void => metrics.countRefused()
    const parts = {
      rules,
      versions: block.shared.acquire(ZONE_VERSIONS),
      histories,
      clock,
      onRefused,
      onEnd,
    }
    const findFaults = () =>
      found.flatMap(({ rule, fault }) => missingKey(rule.keyName, block, fault))
    return {
      handler: (next) => new Transfer(next, parts),
      check: findFaults,
      start: () => {
        for (const fault of findFaults()) throw fault
      },
      serving: () => {
        isServing = true
        for (const version of histories.versions()) notify(version)
      },
      stop: () => {
        isServing = false
        histories.stop()
        notifier.close()
      },
    }
  },
}

function notifyAll(
  notifier: Notifier,
  rules: TransferRules,
  version: ZoneVersion,
  block: BlockConfig,
): void {
  const rule = rules.ruleOf(version.zone)
  if (rule === undefined) return
  const key =
    rule.keyName === undefined ? undefined : block.shared.acquire(TSIG_KEYS).find(rule.keyName)
  for (const target of rule.targets) {
    const source = rule.source === '' ? ownAddress(target.host, block) : rule.source
    notifier.notify(version, { target, source, key })
  }
}

function printTransfer(transfer: FinishedTransfer): string {
  const { kind, zone, serial, records, messages, octets, isWhole, fault } = transfer
  const peer = printAddress(transfer.peerAddress, transfer.peerFamily)
  const size = `${records} records, ${messages} messages, ${octets} octets`
  const cause = fault === '' ? 'the peer disconnected or was too slow' : fault
  const end = isWhole ? '' : `, not finished: ${cause}`
  return `${kind} of ${printName(zone)} ${serial} to ${peer}: ${size}${end}`
}

function scanRule(
  d: Dispenser,
  block: BlockConfig,
): { rule: TransferRule; fault: (message: string) => InputError } {
  const position = d.position()
  const zones = scanZoneArgsOrBlock(d, d.remainingArgs(), block)
  const networks: Cidr[] = []
  const targets: NotifyTarget[] = []
  let source = ''
  let keyName: Uint8Array | undefined
  d.eachProperty(() => {
    if (d.value() === 'to') scanTo(d, networks, targets)
    else if (d.value() === 'source') source = scanSource(d, source)
    else if (d.value() === 'key') keyName = scanKeyName(d)
    else throw d.unknownProperty(d.value(), ['to', 'source', 'key'])
  })
  if (networks.length === 0)
    throw d.error("'to' is required; name the hosts that may transfer: `to ADDR...`")
  const rule = { zones, addresses: new AddressSet(networks), keyName, targets, source }
  const fault = (message: string): InputError => new InputError(position, message)
  return { rule, fault }
}

function scanTo(d: Dispenser, networks: Cidr[], targets: NotifyTarget[]): void {
  const args = d.remainingArgs(1)
  for (const text of args) {
    if (text === '*') {
      networks.push(...ALL_ADDRESSES)
      continue
    }
    const network = text.includes('/') ? scanCidr(text) : undefined
    if (network !== undefined) {
      networks.push(network)
      continue
    }
    const target = scanEndpoint(d, text)
    targets.push(target)
    networks.push(hostNetwork(target))
  }
}
