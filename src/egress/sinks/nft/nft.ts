import type { Timers } from '../../../base/timers.ts'
import type { AllowSetName } from './allowed-element.ts'
import { NftSession, runNft } from './nft-session.ts'
import { scanListing, type TableListing } from './table-listing.ts'

/** What an enforcer needs from nft(8). */
export interface Nft {
  /** Runs a transaction. Resolves with '' once it is in force, otherwise with the reason why it may not be. */
  commit(statements: readonly string[]): Promise<string>
  /** The whole table, or undefined if the kernel does not have it. Throws an Error, also after `timeoutMs`. */
  list(timeoutMs?: number): Promise<TableListing | undefined>
  /** As `list`, quickly: without rules, and of what clients may connect to only the elements of `sets`. */
  glance(sets?: readonly AllowSetName[]): Promise<TableListing | undefined>
  close(): Promise<void>
}

interface NftProgramsOptions {
  readonly table: string
  /** The program and its first arguments; `['nft']` unless a test needs another. */
  readonly command: readonly string[]
  readonly timers: Timers
  /** Called when the process that waits for transactions has ended. */
  readonly onEnd: (reason: string) => void
}

/** A transaction of more characters gets a process of its own: a session reads 3 µs for each. */
const SESSION_CHARACTERS = 8192
/** A session takes so many commands: after 40 000, each would take seven times as long as at first. */
const SESSION_COMMANDS = 1000
/** A process that takes longer is ended. */
const COMMIT_MS = 60_000
/** The kernel interrupts a listing of many elements at each transaction, so it may never end. */
const LIST_MS = 60_000

const NOT_THERE = /No such file or directory/
const GLANCED = [
  'map NAME profiles4',
  'map NAME profiles6',
  'set NAME clients4',
  'set NAME clients6',
]

/** nft(8): one long-lived process for short transactions, and further ones for what takes longer. */
export class NftPrograms implements Nft {
  readonly #options: NftProgramsOptions
  #session: NftSession | undefined
  /** Takes the place of the session once it has started. */
  #successor: NftSession | undefined

  constructor(options: NftProgramsOptions) {
    this.#options = options
  }

  async commit(statements: readonly string[]): Promise<string> {
    const { command, timers } = this.#options
    let characters = 0
    for (const { length } of statements) characters += length
    if (characters > SESSION_CHARACTERS) {
      const input = statements.join('\n')
      const run = await runNft({ command, args: ['-f', '-'], input, timeoutMs: COMMIT_MS })
      return run.fault
    }
    const session = this.#open()
    const cancel = timers.after(COMMIT_MS, () => session.kill())
    const fault = await session.commit(statements)
    cancel()
    return fault
  }

  async list(timeoutMs = LIST_MS): Promise<TableListing | undefined> {
    const { command, table } = this.#options
    // -p: it would look up the name of the protocol of each element in a file.
    const args = ['-p', 'list', 'table', 'inet', table]
    const { output, fault } = await runNft({ command, args, input: '', timeoutMs })
    if (fault === '') return scanListing(output, table)
    if (NOT_THERE.test(fault)) return undefined
    throw new Error(fault)
  }

  async glance(sets: readonly AllowSetName[] = []): Promise<TableListing | undefined> {
    const { table } = this.#options
    // Another session may take the place of one between two commands.
    const chains = scanListing(await this.#open().list('list chains inet'), table)
    if (chains === undefined) return undefined
    const elements = new Map<string, readonly string[]>()
    for (const what of [...GLANCED, ...sets.map((set) => `set NAME ${set}`)]) {
      const text = await this.#open()
        .list(`list ${what.replace('NAME', `inet ${table}`)}`)
        .catch(missing)
      for (const [name, list] of scanListing(text, table)?.elements ?? []) elements.set(name, list)
    }
    return { chains: chains.chains, elements }
  }

  async close(): Promise<void> {
    await Promise.all([this.#session?.close(), this.#successor?.close()])
  }

  #open(): NftSession {
    this.#session ??= this.#start()
    if (this.#session.commands >= SESSION_COMMANDS) this.#replace(this.#session)
    return this.#session
  }

  /** Starts the next session, and uses it as soon as it replies: no transaction waits for the start. */
  #replace(old: NftSession): void {
    if (this.#successor !== undefined) return
    const next = this.#start()
    this.#successor = next
    const settle = (isReady: boolean): void => {
      this.#successor = undefined
      if (!isReady) return
      if (this.#session !== old) return void next.close()
      this.#session = next
      void old.close()
    }
    next.list('').then(
      () => settle(true),
      () => settle(false),
    )
  }

  #start(): NftSession {
    const { command, onEnd } = this.#options
    const session = new NftSession({
      command,
      onEnd: (reason) => {
        if (this.#session !== session) return
        this.#session = undefined
        onEnd(reason)
      },
    })
    return session
  }
}

function missing(error: Error): string {
  if (NOT_THERE.test(error.message)) return ''
  throw error
}
