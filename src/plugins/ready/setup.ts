import { escapeControls } from '../../base/telemetry/log.ts'
import { collectProblems } from '../../base/telemetry/problems.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanHostPort } from '../../plugin/arguments/host-port.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { HttpReply } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { printProblems, printReady, printUnready, Readiness } from './ready.ts'

const DEFAULT_ADDRESS = ':8181'

/** `ready [ADDRESS] { monitor until-ready|continuously }`: whether all plugins are ready to answer. */
export const ready: Directive = {
  name: 'ready',
  setup(c) {
    const { address, continuously } = scanOptions(c.dispenser)
    const readiness = new Readiness(c.reports.readiness, continuously)
    let closing = false
    const exit = (): void => {
      closing = true
    }
    const page = (): HttpReply => {
      if (closing) return reply(503, 'Shutting down')
      const unready = readiness.unready()
      if (unready.length === 0) return reply(200, printPage(c, readiness))
      const names = [...new Set(unready.map(({ name }) => name))].join(',')
      c.log.info(`Plugins not ready: "${names}"`, 'not-ready')
      return reply(503, printUnready(unready.map(escapeReason)))
    }
    return { exit, http: { address, path: '/ready', reply: page } }
  },
}

function printPage({ reports }: SetupContext, readiness: Readiness): string {
  const problems = collectProblems(reports.problems)
  const explained = new Set(problems.listed.map(({ plugin }) => plugin))
  const notes = readiness.notes(explained).map(escapeReason)
  return printReady(notes, printProblems(problems).map(escapeControls))
}

function reply(status: number, body: string): HttpReply {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}

/** A reason may quote a file, so it is escaped to one line. */
function escapeReason(unready: { name: string; reason: string }) {
  return { name: unready.name, reason: escapeControls(unready.reason) }
}

function scanOptions(d: Dispenser): { address: string; continuously: boolean } {
  let address = DEFAULT_ADDRESS
  let continuously = false
  for (let i = 0; nextOnce(d, i); i++) {
    const args = d.remainingArgs(0, 1)
    if (args[0] !== undefined) address = scanHostPort(d, args[0])
    d.eachProperty(() => {
      if (d.value() !== 'monitor') throw d.unknownProperty(d.value(), ['monitor'])
      const monitor = d.onlyArg()
      if (monitor !== 'until-ready' && monitor !== 'continuously') {
        throw d.error(`monitor type '${monitor}' not supported`)
      }
      continuously = monitor === 'continuously'
    })
  }
  return { address, continuously }
}
