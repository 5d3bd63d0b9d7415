import { type Controller, type ControllerEnv, SessionController } from '../operator/controller.ts'
import { createDnsNameResolverController } from '../operator/egress/dnsnameresolver/dns-name-resolver-controller.ts'
import { createEgressFirewallController } from '../operator/egress/egressfirewall/egress-firewall-controller.ts'
import { FqdnSession } from '../operator/egress/fqdnnetworkpolicy/session.ts'
import { createOvnController } from '../operator/egress/ovn/ovn-controller.ts'
import { PolicyStatusSession } from '../operator/egress/policystatus/policy-status-session.ts'
import type { EgressArgs } from './egress-args.ts'

/** Makes the controllers for egress policies that are switched on. */
export function createEgressControllers(
  names: ReadonlySet<string>,
  args: EgressArgs,
  env: ControllerEnv,
): readonly Controller[] {
  const controllers: Controller[] = []
  if (
    (names.has('ovn') || names.has('fqdnnetworkpolicy')) &&
    args.ovn.clusterNetworks.length === 0
  ) {
    env.log.warning(
      '--cluster-cidr is not set: DNS answers can allow addresses of nodes, Pods and Services; set it to their networks',
      'cluster-cidr-missing',
    )
  }
  if (names.has('dnsnameresolver')) controllers.push(createDnsNameResolverController(env, args))
  if (names.has('egressfirewall')) controllers.push(createEgressFirewallController(env, args))
  if (names.has('ovn')) controllers.push(createOvnController(env, args.ovn))
  if (names.has('fqdnnetworkpolicy')) {
    controllers.push(new SessionController(() => new FqdnSession(env, args.fqdn)))
  }
  if (names.has('policystatus')) {
    controllers.push(new SessionController(() => new PolicyStatusSession(env)))
  }
  return controllers
}
