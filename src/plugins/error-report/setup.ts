import type { Dispenser } from '../../corefile/dispenser.ts'
import { lowerName, scanName } from '../../dns/name/name.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { Agent, CODES_COUNTED, NamesAgent } from './error-report.ts'

/** `error-report AGENT` or `error-report { receive }`: DNS error reporting (RFC 9567). */
export const errorReport: Directive = {
  name: 'error-report',
  setup(c) {
    let agent: Uint8Array | undefined
    let receives = false
    for (let i = 0; nextOnce(c.dispenser, i); i++) {
      const args = c.dispenser.remainingArgs()
      if (args.length > 1) throw c.dispenser.argError()
      agent = args[0] === undefined ? undefined : scanAgent(c.dispenser, args[0])
      c.dispenser.eachProperty(() => {
        const property = c.dispenser.value()
        if (property !== 'receive') throw c.dispenser.unknownProperty(property, ['receive'])
        if (c.dispenser.nextArg()) throw c.dispenser.argError()
        receives = true
      })
      if (agent === undefined && !receives) {
        throw c.dispenser.error('error-report needs an agent, or a block with receive')
      }
    }
    return [...(receives ? [receive(c)] : []), ...(agent === undefined ? [] : [name(agent)])]
  },
}

function scanAgent(d: Dispenser, text: string): Uint8Array {
  const agent = scanName(text.endsWith('.') ? text : `${text}.`)
  // RFC 9567 section 6.2: the root is no agent.
  if (agent === undefined || agent.length === 1) {
    throw d.error(
      `invalid agent ${JSON.stringify(text)}; write a domain name, such as er.example.org`,
    )
  }
  return lowerName(agent)
}

function name(agent: Uint8Array): DirectivePart {
  return { handler: (next) => new NamesAgent(next, agent) }
}

function receive(c: SetupContext): DirectivePart {
  const zones = c.block.keys.map(({ zone }) => zone)
  if (zones.some((zone) => zone.length === 1)) {
    throw c.dispenser.error('receive needs a server block for the agent, not for the root')
  }
  const slots = c.counters()
  const reports = c.metrics.counter(
    'sextant_error_reports_total',
    'Counter of DNS error reports that resolvers sent (RFC 9567).',
    ['server', 'zone', 'view', 'code'],
  )
  const collecting = collectWhileServing(c, () => {
    slots.forEach((counts, labels) => {
      for (let code = 0; code <= CODES_COUNTED; code++) {
        const count = counts.take(code)
        const label = code === CODES_COUNTED ? 'other' : String(code)
        if (count > 0) reports.inc({ ...labels, code: label }, count)
      }
    })
  })
  return { handler: (next) => new Agent(next, zones, c, slots), ...collecting }
}
