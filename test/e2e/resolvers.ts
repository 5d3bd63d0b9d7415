import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { UdpClient } from '../support/client.ts'
import { freePort, startProgram } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { trustAnchors } from './delv.ts'

/** A signed zone and what is below it, as a resolver finds them. */
interface Delegated {
  /** Zone to the ports of its servers, on 127.0.0.1. Zones are without the final dot. */
  readonly zones: Readonly<Record<string, readonly number[]>>
  /** The DNSKEY record that is trusted, owner first. */
  readonly key: string
  /**
   * What Unbound uses for later questions; default: answers, for clients of the same subnet. `proofs`: answers and the
   * proofs of negative ones (RFC 8198), for all clients and of all servers; BIND too. `nothing`: each question is asked
   * again.
   */
  readonly reuses?: 'proofs' | 'nothing'
  /** The longest reply that Unbound accepts over UDP. */
  readonly payloadOctets?: number
}

export interface RunningResolver {
  readonly name: string
  readonly port: number
  output(): string
}

/** Starts Unbound as a resolver that validates. It passes on the subnets of clients if `reuses` is not set. */
export async function startUnboundResolver(t: Test, options: Delegated): Promise<RunningResolver> {
  const port = await freePort()
  const directory = temporaryDirectory(t)
  const isUncached = options.reuses === 'nothing'
  const stubs = Object.entries(options.zones).map(([zone, ports]) => {
    const addresses = ports.map((one) => `  stub-addr: 127.0.0.1@${one}\n`).join('')
    return `stub-zone:\n  name: "${zone}"\n${addresses}  stub-no-cache: ${isUncached ? 'yes' : 'no'}\n`
  })
  const subnets = `module-config: "subnetcache validator iterator"
  send-client-subnet: 127.0.0.1
  max-client-subnet-ipv4: 32
  aggressive-nsec: no
  prefetch: no`
  const proofs = 'module-config: "validator iterator"\n  aggressive-nsec: yes\n  prefetch: yes'
  const nothing = 'module-config: "validator iterator"\n  aggressive-nsec: no'
  const lines = { proofs, nothing }
  const conf = `server:
  interface: 127.0.0.1@${port}
  username: ""
  chroot: ""
  directory: "${directory}"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  unblock-lan-zones: yes
  num-threads: 1
  ${options.reuses === undefined ? subnets : lines[options.reuses]}
  trust-anchor: "${options.key.replace(/\s+/g, ' ')}"
  harden-algo-downgrade: yes
  cache-max-negative-ttl: 5
  val-log-level: 2
  ede: yes
  edns-buffer-size: ${options.payloadOctets ?? 1232}
  verbosity: 1
remote-control:
  control-enable: no
${stubs.join('')}`
  writeFileSync(join(directory, 'conf'), conf)
  const program = startProgram(t, ['unbound', '-d', '-c', join(directory, 'conf')])
  return isUp({ name: 'Unbound', port, output: program.output }, options)
}

/** Starts BIND as a resolver that validates. */
export async function startNamedResolver(t: Test, options: Delegated): Promise<RunningResolver> {
  const port = await freePort()
  const directory = temporaryDirectory(t)
  const synthesizes = options.reuses === 'proofs' ? 'yes' : 'no'
  const zones = Object.entries(options.zones).map(([zone, ports]) => {
    const addresses = ports.map((one) => `127.0.0.1 port ${one};`).join(' ')
    return `zone "${zone}" { type forward; forward only; forwarders { ${addresses} }; };\n`
  })
  const conf = `
options {
  directory "${directory}"; pid-file "${directory}/pid"; session-keyfile "${directory}/session";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion yes; dnssec-validation yes; empty-zones-enable no; synth-from-dnssec ${synthesizes}; prefetch 0;
  max-ncache-ttl 5; servfail-ttl 0; stale-answer-enable no; qname-minimization off; notify no;
};
controls { };
${trustAnchors(options.key)}
${zones.join('')}`
  writeFileSync(join(directory, 'conf'), conf)
  const program = startProgram(t, ['named', '-g', '-n', '1', '-c', 'conf'], { directory })
  return isUp({ name: 'BIND', port, output: program.output }, options)
}

/** Waits until a resolver answers, and validates the keys: on a busy machine, its first questions may time out. */
async function isUp(resolver: RunningResolver, { key }: Delegated): Promise<RunningResolver> {
  const client = await UdpClient.connect(resolver.port)
  // With recursion, BIND looks for the root servers first.
  const local = { name: 'localhost', type: 'A', isRecursive: false }
  const [zone = ''] = key.split(/\s/)
  const anchor = { name: zone, type: 'DNSKEY', isRecursive: true }
  const ask = async (question: typeof local, timeoutMs: number): Promise<Buffer | undefined> => {
    return await client.ask(question, 1, timeoutMs).catch(() => undefined)
  }
  try {
    await until(async () => (await ask(local, 100)) !== undefined, `${resolver.name} to answer`)
    const isFound = async () => readRcode(await ask(anchor, 1000)) === 0
    await until(isFound, `${resolver.name} to find the keys of ${zone}`)
  } catch (error) {
    throw new Error(`${error}; it printed:\n${resolver.output()}`)
  } finally {
    client.close()
  }
  return resolver
}

function readRcode(reply: Buffer | undefined): number | undefined {
  return reply && reply[3]! & 15
}
