import { InputError } from '../base/errors.ts'
import { printPercent } from '../explain/answers.ts'
import { jsonOfWhatIf, printWhatIf } from '../explain/print-what-if.ts'
import type { ComparedBlock } from '../explain/served-names.ts'
import { compareBlocks, shareOf, type WhatIf } from '../explain/what-if.ts'
import { describe } from '../server/supervisor.ts'
import { chooseCorefile } from './corefile.ts'
import { printData } from './data-format.ts'
import { editRecords, loadOffline, type OfflineRequest, type OfflineServer } from './offline.ts'
import { errorLines, type Output } from './output.ts'
import { scanWhatIfArgs, type WhatIfArgs } from './what-if-args.ts'

const DNS_PORT = 53

/**
 * `sextant what-if`: prints which answers another configuration changes, and for which part of the
 * address space. Resolves to 0, or to 1 for invalid input or a share above `--max-share`.
 */
export async function runWhatIf(argv: readonly string[], output: Output): Promise<number> {
  const servers: OfflineServer[] = []
  const once = printOnce(output)
  try {
    const args = scanWhatIfArgs(argv)
    const load = async (request: OfflineRequest): Promise<OfflineServer> => {
      const server = await loadOffline(
        { ...request, readsEntries: false },
        { lines: errorLines(once) },
      )
      servers.push(server)
      return server
    }
    const corefile = chooseCorefile(args.conf, DNS_PORT)
    const old = await load({ corefile, dnsPort: DNS_PORT, records: args.oldRecords })
    const isEdit = args.newConf === undefined && args.database === undefined
    const next = isEdit
      ? editRecords(old, args.newRecords)
      : (
          await load({
            corefile:
              args.newConf === undefined ? corefile : chooseCorefile(args.newConf, DNS_PORT),
            dnsPort: DNS_PORT,
            records: args.newRecords ?? (args.newConf === undefined ? args.oldRecords : undefined),
            database: args.database,
            similar: old,
          })
        ).blocks
    if (old.blocks.length + next.length === 0)
      throw new InputError(
        undefined,
        'no server block has kuadrant: there are no DNSRecords to compare',
      )
    for (const warning of await warningsOf([...old.blocks, ...next]))
      once.printError(`[WARNING] ${warning}`)
    for (const fault of await faultsOf(old.blocks)) once.printError(`[WARNING] ${describe(fault)}`)
    const faults = await faultsOf(next)
    for (const fault of faults) output.printError(describe(fault))
    if (faults.length > 0) return 1
    warnOfPeers(next, once)
    const blocks = { before: old.blocks, after: next, isEdit }
    return report(args, await compareBlocks(blocks), output)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const one of error.all()) output.printError(describe(one))
    return 1
  } finally {
    for (const server of servers) await server.close()
  }
}

function report({ format, shareMax }: WhatIfArgs, result: WhatIf, output: Output): number {
  printData(output, format, {
    data: () => jsonOfWhatIf(result),
    table: (isWide) => printWhatIf(result, isWide),
  })
  if (shareMax === undefined) return 0
  // No client has an answer that a new name could change.
  const over = result.changes.filter((change) => !change.isNew && shareOf(change) > shareMax)
  const [first] = over
  if (first === undefined) return 0
  const more = over.length === 1 ? '' : ` and ${over.length - 1} more`
  const share = printPercent(shareOf(first))
  const limit = printPercent(shareMax)
  output.printError(`${first.name} ${first.type}${more}: ${share} is above --max-share ${limit}`)
  return 1
}

/** Prints each error once: what concerns both configurations is the same line. */
function printOnce({ lines, printError }: Output): Pick<Output, 'lines' | 'printError'> {
  const printed = new Set<string>()
  return {
    lines,
    printError: (line) => {
      if (!printed.has(line)) printError(line)
      printed.add(line)
    },
  }
}

/** The faults of the records of all blocks, each once. */
async function faultsOf(blocks: readonly ComparedBlock[]): Promise<InputError[]> {
  const faults = new Set<InputError>()
  for (const { zones } of blocks) {
    const { store } = await zones.read()
    for (const fault of store.faults.all()) faults.add(fault)
  }
  return [...faults]
}

/**
 * Files that were not read, and places without records. A file of other objects would look like a
 * change of all names, and as the old records it would make all names new, which `--max-share` does
 * not count.
 */
async function warningsOf(blocks: readonly ComparedBlock[]): Promise<readonly string[]> {
  const warnings: string[] = []
  for (const { zones } of blocks) {
    const { root, store, warnings: unread } = await zones.read()
    warnings.push(...unread)
    const isEmpty = store.recordCount === 0 && [...store.faults.all()].length === 0
    if (isEmpty) warnings.push(`${root}: has no DNSRecord`)
  }
  return warnings
}

function warnOfPeers(blocks: readonly ComparedBlock[], output: Pick<Output, 'printError'>): void {
  for (const { zones } of blocks) {
    const { peering } = zones.options
    if (peering.peers.length === 0) continue
    const text = 'the records of peers are not compared'
    output.printError(`[WARNING] ${describe(new InputError(peering.position, text))}`)
  }
}
