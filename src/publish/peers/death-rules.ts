import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import type { DeathRules } from '../../peering/deaths/if-site-dies.ts'
import { OPEN } from '../../steering/rules.ts'
import type { PublishOptions } from '../options.ts'
import { probingOf } from '../same-source.ts'

/** What the configuration decides about the death of sites. */
export type OwnDeathRules = Omit<DeathRules, 'sites' | 'knowsOthers'>

/** `all`: the options of all blocks of the Corefile, including these. */
export function deathRulesOf(
  options: PublishOptions,
  all: readonly PublishOptions[],
): OwnDeathRules {
  const { site, source, peering, settings } = options
  const { probePeers, expiryMs: silentMs } = peering
  const { probe, allowed, commands = new Map<string, never>() } = probingOf(source, all)
  const isOff = probe === undefined || probe === 'off'
  const property = isOff ? 'probe' : 'probe-peers'
  return {
    site,
    silentMs,
    unprobed: isOff || probePeers === undefined ? `${property} is off` : '',
    quorum: probePeers?.quorum ?? 0,
    holdDownMs: probePeers?.holdDownMs ?? 0,
    policy: new ProbePolicy(allowed.map(({ cidr }) => cidr)),
    commands,
    allDown: settings?.allDown ?? OPEN,
  }
}
