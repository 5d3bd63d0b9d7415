import type { CorefileSource } from '../server/corefile-source.ts'
import { describe, Supervisor } from '../server/supervisor.ts'
import { composeParts } from './compose.ts'
import { errorLines } from './output.ts'
import { DNS_PORT } from './serve-args.ts'

/** What to serve: give either `corefile` or `path`. */
export interface EmbeddedOptions {
  /** Text of a Corefile. Relative paths in it start at the working directory. */
  readonly corefile?: string
  /** Path of a Corefile. */
  readonly path?: string
  /** Port of server blocks that name none; 0 = the system chooses one for each address. The default is 53. */
  readonly port?: number
  /** Receives each line of the log, without its newline. The default is to drop them. */
  readonly onLog?: (line: string) => void
}

/** An open address of DNS. */
export interface EmbeddedAddress {
  /** '' = every address of this host. */
  readonly host: string
  /** The actual port. UDP and TCP have the same one. */
  readonly port: number
}

/** What `startServer` resolves to. */
export interface EmbeddedServer {
  readonly addresses: readonly EmbeddedAddress[]
  /**
   * Reads the file again, or serves the Corefile in `corefile` from now on. If that fails, rejects with the reason, and
   * the server continues with the last Corefile.
   */
  reload(corefile?: string): Promise<void>
  /** Answers the queries that have arrived, and closes all addresses. Rejects if an address did not close. */
  stop(): Promise<void>
}

/** Starts a server in this process. Rejects with the first fault of the Corefile, or of an address. */
export async function startServer(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { corefile, path, port = DNS_PORT, onLog = () => {} } = options
  if ((corefile === undefined) === (path === undefined)) {
    throw new TypeError('startServer: give either corefile or path')
  }
  const source =
    path === undefined ? new CorefileText(corefile ?? '') : { kind: 'file' as const, path }
  const lines = errorLines({ printError: (line) => onLog(line) })
  const supervisor = new Supervisor(source, composeParts(port, lines))
  await supervisor.start().catch((error) => {
    throw new Error(describe(error), { cause: error })
  })
  let reloaded: Promise<unknown> = Promise.resolve()
  return {
    get addresses() {
      return supervisor.plans.map(({ host, port }) => ({ host, port }))
    },
    reload: async (next) => {
      // One after the other: the supervisor reads the text later, and must not read that of another call.
      const own = reloaded.then(() => reload(supervisor, source, next))
      reloaded = own.catch(() => {})
      const fault = await own
      if (fault !== '') throw new Error(fault)
    },
    stop: async () => {
      const code = await supervisor.stop()
      if (code !== 0) throw new Error('the server did not stop cleanly: its log has the reason')
    },
  }
}

/** A Corefile that is no file. The supervisor reads the text at each reload. */
class CorefileText {
  readonly kind = 'text'
  /** In errors. */
  readonly name = 'Corefile'
  text: string

  constructor(text: string) {
    this.text = text
  }
}

async function reload(
  supervisor: Supervisor,
  source: CorefileSource,
  next: string | undefined,
): Promise<string> {
  if (next === undefined) return supervisor.tryToReload()
  if (!(source instanceof CorefileText))
    throw new TypeError('reload: startServer got a path; edit that file, then call reload()')
  const { text } = source
  source.text = next
  const fault = await supervisor.tryToReload()
  if (fault !== '') source.text = text
  return fault
}
