import { InputError } from '../../base/errors.ts'
import { scanJsonText } from '../../base/json-text.ts'
import type { FleetAnswer, FleetQuestion } from '../../plugin/admin-fleet.ts'
import type { FleetMember } from './fleet-member.ts'
import { textOf } from './fleet-report.ts'
import { scanToken } from './token.ts'
import { WatchedFiles } from './watched-files.ts'

/** Requests that one server has not answered yet. More are refused. */
const WAITING_MAX = 16

/** Bounds of one reply. */
export interface ReplyBounds {
  readonly msMax: number
  readonly octetsMax: number
}

/** The admin API of another server. */
export class RemoteServer {
  readonly member: FleetMember
  readonly #token: CredentialFile
  readonly #ca: CredentialFile
  #waiting = 0

  constructor(member: FleetMember) {
    this.member = member
    this.#token = new CredentialFile(member.token)
    this.#ca = new CredentialFile(member.ca)
  }

  /** Throws InputError if a file can't be used. */
  check(): void {
    try {
      this.#headers()
      this.#ca.read()
    } catch (error) {
      throw new InputError(undefined, `server ${this.member.name}: ${faultOf(error)}`, error)
    }
  }

  /** `closed`: ends the request. */
  async ask(
    question: FleetQuestion,
    { msMax, octetsMax }: ReplyBounds,
    closed: AbortSignal,
  ): Promise<FleetAnswer> {
    if (this.#waiting >= WAITING_MAX)
      return fault(503, 'too many requests to it wait; repeat the request')
    this.#waiting++
    const late = AbortSignal.timeout(msMax)
    try {
      return answerOf(await this.#exchange(question, octetsMax, AbortSignal.any([late, closed])))
    } catch (error) {
      if (late.aborted) return fault(504, `no complete reply within ${msMax / 1000} s`)
      return fault(502, faultOf(error))
    } finally {
      this.#waiting--
    }
  }

  async #exchange(
    { method, path, body }: FleetQuestion,
    octetsMax: number,
    signal: AbortSignal,
  ): Promise<{ status: number; body: string }> {
    // Every thread loads what a setup imports.
    const { exchangeHttp } = await import('../../base/http-exchange.ts')
    return await exchangeHttp({
      url: new URL(path, this.member.origin),
      method,
      headers: {
        ...this.#headers(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      ca: this.#ca.read(),
      octetsMax,
      signal,
    })
  }

  #headers(): Record<string, string> {
    const text = this.#token.read()
    if (text === undefined) return {}
    return { authorization: `Bearer ${scanToken(this.member.token, text)}` }
  }
}

/** A file of credentials, which may change. */
class CredentialFile {
  readonly #file: WatchedFiles
  #text: string | undefined

  /** `path`: '' = none. */
  constructor(path: string) {
    this.#file = new WatchedFiles(path === '' ? [] : [path])
  }

  /** Returns its text; undefined = none is configured. Throws the system's error. */
  read(): string | undefined {
    const [text] = this.#file.readChanged() ?? []
    if (text !== undefined) this.#text = text
    return this.#text
  }
}

function answerOf({
  status,
  body,
}: {
  readonly status: number
  readonly body: string
}): FleetAnswer {
  const json = scanJsonText(body)
  if (status === 200 && json !== undefined) return { kind: 'reply', json }
  if (status >= 300 && status < 400)
    return fault(502, `status ${status}: redirects are not followed`)
  const detail =
    typeof json === 'object' && json !== null && 'detail' in json ? textOf(json.detail) : ''
  if (detail === '') return fault(502, `the reply is not that of an admin API (status ${status})`)
  // Its 401 is not about the client of this server.
  return fault(status === 400 || status === 404 || status === 503 ? status : 502, detail)
}

function fault(status: number, detail: string): FleetAnswer {
  return { kind: 'fault', status, detail }
}

function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return textOf(String(error))
  const code = 'code' in error ? error.code : ''
  if (code === 'ECONNREFUSED') return 'no server listens on the address'
  if (code === 'ECONNRESET') return 'the connection ended without a reply; is this its admin port?'
  if (code === 'EPROTO') return 'the server does not use TLS there'
  return textOf(error.message)
}
