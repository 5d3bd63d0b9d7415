import { composeClientSubnet, parseClientSubnet } from '../dns/edns/client-subnet.ts'
import { RRClass } from '../dns/iana/classes.ts'
import { printRcode, Rcode } from '../dns/iana/rcodes.ts'
import { printType, RRType } from '../dns/iana/types.ts'
import { composeMessage } from '../dns/message/compose-message.ts'
import { ALIASES_MAX } from '../dns/message/direct-answer.ts'
import { HeaderFlag } from '../dns/message/header.ts'
import type { Message } from '../dns/message/message.ts'
import { parseMessage } from '../dns/message/parse-message.ts'
import { printRecord } from '../dns/message/print-message.ts'
import { Protocol } from '../dns/message/query.ts'
import { lowerName, printName } from '../dns/name/name.ts'
import type { AddressFamily } from '../dns/text/address.ts'
import { explainedName } from '../plugin/answer-explainer.ts'
import type { ListenPlan } from '../server/listen-plan.ts'
import type { ReplayedReply } from '../server/replay.ts'
import type { ExplainParts, ExplainRequest } from './explain-request.ts'
import type { ExplainedClient, ExplainedEnd, Explanation } from './explanation.ts'
import { printPrefix } from './prefix.ts'
import { explainLocation, StepExplainer } from './steps.ts'

const ECS_OPTION = 8
const PAYLOAD_OCTETS = 1232
const ZONES_LISTED_MAX = 5

/**
 * Answers a query with the code that serves, with the random numbers of a seed, and returns why the
 * answer is what it is. Synchronous: no change of records comes between the answer and its reasons.
 */
export function explain(request: ExplainRequest, parts: ExplainParts): Explanation {
  const { replay, trace } = parts
  const packet = composeQuery(request)
  const run = (plan: ListenPlan, protocol: Protocol): ReplayedReply => {
    trace.begin(request.seed)
    return replay.serve(plan, { packet, protocol, peer: request.source })
  }
  const plan = choosePlan(request, parts)
  let reply = run(plan, request.protocol ?? Protocol.Udp)
  let message = reply.octets === undefined ? undefined : parseMessage(reply.octets)
  const isTruncated = message !== undefined && (message.flags & HeaderFlag.TC) !== 0
  if (isTruncated && request.protocol === undefined) {
    reply = run(plan, Protocol.Tcp)
    message = reply.octets === undefined ? undefined : parseMessage(reply.octets)
  }
  const { choices } = trace
  const isOpen = reply.handedOverTo !== undefined
  const steps = new StepExplainer(parts, plan, request, reply, choices)
  const explained = message === undefined ? [] : steps.explain(message)
  return {
    name: printName(request.name),
    type: printType(request.type),
    seed: request.seed,
    client: explainClient(request, reply),
    server: {
      address: plan.address,
      zone: reply.zone,
      view: reply.view,
      directive: reply.answeredBy || (reply.handedOverTo ?? ''),
    },
    stored: reply.stored,
    location: explainLocation(steps.locator, reply.client),
    steps: explained,
    end: explainEnd(reply, message, request, replay.plans),
    answer: message?.answer.map(printRecord) ?? [],
    rcode: message === undefined || isOpen ? '' : printRcode(message.rcode),
    scope: explainScope(
      message,
      reply,
      choices.some(({ lookup }) => lookup !== undefined),
      choices.some(({ sticky }) => sticky !== undefined),
    ),
    reply: reply.octets === undefined ? '' : Buffer.from(reply.octets).toString('base64'),
  }
}

/** The query as a client or resolver sends it. */
export function composeQuery({ name, type, subnet }: ExplainRequest): Uint8Array {
  const options =
    subnet === undefined ? [] : [{ code: ECS_OPTION, data: composeClientSubnet(subnet) }]
  return composeMessage({
    id: 0,
    opcode: 0,
    flags: 0,
    rcode: 0,
    question: { name, type, rrclass: RRClass.IN },
    answer: [],
    authority: [],
    additional: [],
    edns: { payloadOctets: PAYLOAD_OCTETS, version: 0, flags: 0, options },
  })
}

function choosePlan(
  { address, name, type, source }: ExplainRequest,
  { replay }: ExplainParts,
): ListenPlan {
  const { plans } = replay
  const named = plans.find((plan) => plan.address === address)
  if (named !== undefined) return named
  const qname = lowerName(name)
  const serving = plans.find((plan) => replay.findSources(plan, source, qname, type) !== undefined)
  return serving ?? plans[0]!
}

function explainClient(
  { subnet }: ExplainRequest,
  { client: { address, clientFamily, clientBits, clientIsEcs } }: ReplayedReply,
): ExplainedClient {
  const family = clientFamily as AddressFamily
  const text = printPrefix({ family, bytes: address, bits: clientBits })
  if (clientIsEcs) {
    const reason = 'the query has a client subnet, and geoip has edns-subnet'
    return { address: text, source: 'subnet', reason }
  }
  let reason = 'the query has no client subnet'
  if (subnet !== undefined && subnet.bits === 0) {
    reason = 'the client subnet has 0 bits: the client asks not to be located by it'
  } else if (subnet !== undefined) {
    reason = 'the client subnet is ignored: the server block has no geoip with edns-subnet'
  }
  return { address: text, source: 'source address', reason }
}

function explainScope(
  message: Message | undefined,
  { client }: ReplayedReply,
  isLocated: boolean,
  isSticky: boolean,
): Explanation['scope'] {
  const option = message?.edns?.options.find(({ code }) => code === ECS_OPTION)
  const found = option === undefined ? undefined : parseClientSubnet(option.data)
  if (found === undefined) return undefined
  const bits = found.scopeBits
  if (!client.clientIsEcs) return { bits, reason: 'the client subnet did not decide the answer' }
  if (isSticky) return { bits, reason: 'the sticky choice or the GEO class depends on this prefix' }
  if (!isLocated) return { bits, reason: 'no step of the answer depends on the location' }
  return {
    bits,
    reason: `all addresses of this prefix are in the same GEO class: no geo code or location in use distinguishes them`,
  }
}

function explainEnd(
  reply: ReplayedReply,
  message: Message | undefined,
  { name, type }: ExplainRequest,
  plans: readonly ListenPlan[],
): ExplainedEnd {
  const { handedOverTo, error } = reply
  if (handedOverTo !== undefined && error !== '') {
    const text = `not known: ${handedOverTo}: ${error}; to ask a running server, add @SERVER`
    return { kind: 'other directive', text }
  }
  if (handedOverTo !== undefined) {
    const text = `the directive ${handedOverTo} would query another server; an explanation does not`
    const explained = type === RRType.TXT ? explainedName(lowerName(name), name.length) : undefined
    const own = `the server answers with an explanation of ${explained === undefined ? '' : printName(explained)}`
    const isOwn = explained !== undefined && handedOverTo === 'kuadrant'
    return { kind: 'other directive', text: isOwn ? own : text }
  }
  if (message === undefined) return { kind: 'no reply', text: 'the server sends no reply' }
  if (reply.zone === '') {
    const text = `no server block serves the name; the zones are: ${listZones(plans)}`
    return { kind: 'refused', text }
  }
  const last = lastName(message)
  if (message.rcode === Rcode.NXDOMAIN) {
    return { kind: 'nxdomain', text: `${last} does not exist` }
  }
  if (message.rcode !== Rcode.NOERROR) {
    const why = error === '' ? '' : `: ${error}`
    return { kind: 'error', text: `${printRcode(message.rcode)}${why}` }
  }
  return explainNoError(message, last)
}

function listZones(plans: readonly ListenPlan[]): string {
  const blocks = plans.flatMap((plan) => plan.blocks)
  const zones = [...new Set(blocks.map(({ zoneText }) => zoneText))]
  const more = zones.length > ZONES_LISTED_MAX ? ` and ${zones.length - ZONES_LISTED_MAX} more` : ''
  return zones.slice(0, ZONES_LISTED_MAX).join(', ') + more
}

function explainNoError(message: Message, last: string): ExplainedEnd {
  const type = message.question?.type ?? 0
  const typeText = printType(type)
  if (type === RRType.ANY && message.answer.length > 0) {
    const types = new Set(message.answer.map((record) => printType(record.type)))
    return { kind: 'answer', text: `${last} has ${[...types].join(', ')} records` }
  }
  if (message.answer.some((record) => record.type === type)) {
    return { kind: 'answer', text: `${last} has ${typeText} records` }
  }
  if (message.authority.some((record) => record.type === RRType.SOA)) {
    return { kind: 'nodata', text: `${last} exists, but has no ${typeText} records` }
  }
  const cut = message.authority.find((record) => record.type === RRType.NS)
  if (cut !== undefined) {
    return { kind: 'referral', text: `${printName(cut.owner)} is delegated to other nameservers` }
  }
  if (message.answer.length === 0) return { kind: 'nodata', text: `no ${typeText} records` }
  return { kind: 'outside', text: explainOpenChain(message, last) }
}

/** Why the server does not follow a CNAME chain to its end. */
function explainOpenChain({ answer }: Message, last: string): string {
  const aliases = answer.filter(({ type }) => type === RRType.CNAME)
  const isLoop = aliases.some(({ owner }) => printName(owner) === last)
  if (isLoop) return `the chain is a loop: it leads back to ${last}`
  const resolver = "the client's resolver follows the rest"
  if (aliases.length >= ALIASES_MAX) {
    return `the chain leads to ${last}; the server follows at most ${ALIASES_MAX} CNAMEs, and ${resolver}`
  }
  return `the chain leads to ${last}, which no zone of this server has; ${resolver}`
}

/** The name that the answer ends at: the target of its last CNAME. */
function lastName({ question, answer }: Message): string {
  const alias = answer.findLast((record) => record.type === RRType.CNAME)
  const isFollowed = question?.type !== RRType.CNAME && question?.type !== RRType.ANY
  if (alias !== undefined && isFollowed) return printName(alias.rdata)
  return question === undefined ? '.' : printName(question.name)
}
