import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'
import { SharedValues } from '../../src/base/shared-values.ts'
import { SILENT_LOG } from '../../src/base/telemetry/log.ts'
import { composeClientSubnet } from '../../src/dns/edns/client-subnet.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { Protocol } from '../../src/dns/message/query.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { type Cidr, scanAddress } from '../../src/dns/text/address.ts'
import type { ExplainRequest } from '../../src/explain/explain-request.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import type { Explanation } from '../../src/explain/explanation.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import { Instance } from '../../src/server/instance.ts'
import { Server } from '../../src/server/server.ts'
import { DataChannel } from '../../src/server/thread-channel.ts'
import { GeoWeightSteerer, STEERER_FACTORY } from '../../src/steering/steerer.ts'
import { NO_HOOKS } from '../support/setup.ts'
import { ASKED, CLIENTS, loadWorld, TYPES } from './worlds.ts'

// Long: thousands of random zones.

const WORLDS = 12
const QUERIES = 850

/** A server as a data thread runs it, whose steerers draw from `random`. */
function wireServer(instance: Instance, random: Random): Server {
  const channel = new DataChannel(NO_HOOKS)
  const shared = new SharedValues()
  shared.provide(STEERER_FACTORY, (snapshots) => new GeoWeightSteerer(snapshots, random))
  const resources = new ResourceRegistry()
  const parts = { ...instance.parts, resources, channel, shared }
  const { instance: copy } = Instance.create(instance.blocks, instance.corefile, parts)
  instance.parts.channel.join!(channel)
  const [plan] = copy.plans
  return new Server({
    ...plan!,
    clock: instance.parts.clock,
    random,
    log: SILENT_LOG,
    counters: new ServerCounts(),
  })
}

function ask(server: Server, request: ExplainRequest): string {
  const { name, type, subnet, source } = request
  const options = subnet === undefined ? [] : [{ code: 8, data: composeClientSubnet(subnet) }]
  const packet = composeMessage({
    ...{ id: 0, opcode: 0, flags: 0, rcode: 0, answer: [], authority: [], additional: [] },
    question: { name, type, rrclass: 1 },
    edns: { payloadOctets: 1232, version: 0, flags: 0, options },
  })
  const tx = server.acquire()
  const { query } = tx
  query.packet = packet
  query.packetAt = -1
  query.packetOctets = packet.length
  query.protocol = Protocol.Udp
  query.peerAddress.set(source.bytes)
  query.peerFamily = source.family
  const out = new Uint8Array(65_535)
  const octets = server.serve(tx, out)
  server.release(tx)
  return Buffer.from(out.subarray(0, octets as number)).toString('base64')
}

function randomRequest(random: Random): ExplainRequest {
  const source = scanAddress(CLIENTS[random.below(CLIENTS.length)]!)!
  const client = scanAddress(CLIENTS[random.below(CLIENTS.length)]!)!
  const subnet: Cidr = { ...client, bits: client.family === 1 ? 24 : 56 }
  return {
    name: scanName(ASKED[random.below(ASKED.length)]!)!,
    type: TYPES[random.below(TYPES.length)]!,
    source,
    subnet: random.below(2) === 0 ? undefined : subnet,
    seed: random.next32(),
    protocol: Protocol.Udp,
  }
}

/** What of the explanation contradicts its answer; '' = nothing. */
function contradiction({ steps, answer }: Explanation): string {
  for (const { name, type, rdata, endpoints, choice, notes } of steps) {
    const at = `${name} ${type}`
    if (notes.some((note) => note.includes('have changed'))) return `${at}: not joined`
    if (endpoints === undefined) return `${at}: no endpoints`
    for (const data of rdata) {
      if (!answer.some((line) => line.endsWith(data))) return `${at}: ${data} is not in the answer`
    }
    if (rdata.length === 0) continue
    const chosen = endpoints.filter(({ isChosen }) => isChosen)
    const targets = chosen.flatMap((endpoint) => endpoint.targets)
    if (!rdata.every((data) => targets.includes(data))) return `${at}: not of the chosen endpoints`
    if (chosen.some(({ share, dropped }) => share === 0 || dropped !== '')) return `${at}: dropped`
    if (choice === undefined) continue
    const { candidates, nearer = [] } = choice.rungs[choice.decided]!
    for (const { endpoint, reason } of nearer) {
      // The few locations of a world are ordered exactly.
      const isFault = reason === '' || reason.startsWith('in service')
      if (isFault || endpoints[endpoint]!.isChosen) return `${at}: nearer: ${reason}`
    }
    const shares = candidates.filter((c) => !c.isStandby)
    const sum = new Set(shares.map(({ share }) => share))
    const isWhole = sum.size === 1 && sum.has(1)
    const total = shares.reduce((all, { share }) => all + share, 0)
    if (!isWhole && Math.abs(total - 1) > 1e-9) return `${at}: shares add up to ${total}`
    const isDrawn = !isWhole && shares.length > 1 && !choice.isSticky
    if (isDrawn !== (choice.draw !== undefined)) return `${at}: draw`
    if (choice.picks === undefined) continue
    const picks = new Set(choice.picks.map(({ endpoint }) => endpoint))
    if (picks.size < choice.picks.length || picks.size < 2) return `${at}: picks`
    if (endpoints.some(({ isChosen }, i) => isChosen !== picks.has(i))) return `${at}: not picked`
    const below = choice.picks.map(({ draw }) => draw?.below ?? 0)
    if (below.some((sum, i) => i > 0 && isDrawn && sum >= below[i - 1]!)) return `${at}: repeated`
  }
  return ''
}

/** What decided a choice, and how many of the answers have such a choice at least. */
const LEAST = {
  drawn: 500,
  sticky: 300,
  weight: 500,
  distance: 300,
  nearer: 50,
  list: 100,
  several: 40,
}
type Reason = keyof typeof LEAST

function reasonsOf({ steps }: Explanation): Set<Reason> {
  const reasons = new Set<Reason>()
  for (const { choice } of steps) {
    if (choice === undefined) continue
    const { nearest, nearer, candidates } = choice.rungs[choice.decided]!
    const shares = new Set(candidates.filter((one) => !one.isStandby).map(({ share }) => share))
    if (choice.draw !== undefined) reasons.add('drawn')
    if (choice.isSticky) reasons.add('sticky')
    if (choice.picks !== undefined) reasons.add('several')
    // Without weights, all candidates have the same share.
    if (shares.size > 1) reasons.add('weight')
    if (nearest !== undefined) reasons.add('distance')
    if (nearer !== undefined) reasons.add('nearer')
    if (choice.failover !== undefined) reasons.add('list')
  }
  return reasons
}

t.test('an explanation has the answer of the server, octet for octet', async (t) => {
  const kinds = new Map<string, number>()
  const choices: Record<Reason, number> = {
    drawn: 0,
    sticky: 0,
    weight: 0,
    distance: 0,
    nearer: 0,
    list: 0,
    several: 0,
  }
  for (let world = 1; world <= WORLDS; world++) {
    await t.test(`world ${world}`, async (t) => {
      const { instance } = await loadWorld(t, world, { hasAnswers: world % 3 === 0 })
      const draws = new Random(0)
      const server = wireServer(instance, draws)
      const explainer = await Explainer.open(instance)
      const random = new Random(world * 1000)
      const wrong: string[] = []
      for (let i = 0; i < QUERIES; i++) {
        const request = randomRequest(random)
        draws.restart(request.seed)
        const wire = ask(server, request)
        const explanation = explainer.explain(request)
        // Other seeds were used in between.
        const again = i % 20 === 0 ? explainer.explain(request) : explanation
        if (explanation.reply !== wire) wrong.push(`other reply: ${explanation.name}`)
        if (JSON.stringify(again) !== JSON.stringify(explanation)) wrong.push('not repeatable')
        const fault = contradiction(explanation)
        if (fault !== '') wrong.push(`${fault}\n${printExplanation(explanation).join('\n')}`)
        kinds.set(explanation.end.kind, (kinds.get(explanation.end.kind) ?? 0) + 1)
        for (const reason of reasonsOf(explanation)) choices[reason]++
      }
      explainer.close()
      t.strictSame(wrong.slice(0, 3), [])
    })
  }
  for (const kind of ['answer', 'nodata', 'nxdomain', 'outside']) {
    t.ok((kinds.get(kind) ?? 0) > 50, `${kind}: ${kinds.get(kind)} of ${[...kinds].join(' ')}`)
  }
  for (const [reason, least] of Object.entries(LEAST)) {
    const count = choices[reason as Reason]
    t.ok(count > least, `${reason}: ${count} choices`)
  }
})
