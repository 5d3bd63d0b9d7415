import { serverPath } from './server-path.ts'
import { Store } from './store.ts'
import { shownServer } from './use-parameters.ts'

/** Why the server did not do what was asked. */
export class RequestFault extends Error {
  /** 0 = the server did not answer. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Whether the server answers. */
interface Contact {
  /** When it last answered, in milliseconds since the epoch; undefined = never. */
  readonly lastMs: number | undefined
  /** Why it does not; '' = it answers. */
  readonly fault: string
}

/** From a request to the end of its reply. */
const REPLY_MS_MAX = 15_000

/** Only in memory: a page that is loaded again asks for it. */
let token = ''

export const contact = new Store<Contact>({ lastMs: undefined, fault: '' })
/** True: the server refused a request because its token is missing, wrong or expired. */
export const needsToken = new Store(false)
/** Counts tokens, so that polls repeat their requests with the new one. */
export const tokenCount = new Store(0)

/** Uses a token from the next request on; '' = none. */
export function adoptToken(next: string): void {
  token = next
  needsToken.set(false)
  tokenCount.set(tokenCount.value + 1)
}

/** `path`: with its query. Rejects with RequestFault. */
export function get<T>(path: string): Promise<T> {
  return send<T>('GET', path)
}

/** `body`: is sent as JSON. Rejects with RequestFault. */
export function post<T>(path: string, body: object): Promise<T> {
  return send<T>('POST', path, body)
}

/** `path`: with its query. Rejects with RequestFault. */
export function remove<T>(path: string): Promise<T> {
  return send<T>('DELETE', path)
}

/** Asks the server that the page shows. */
async function send<T>(method: string, wanted: string, body?: object): Promise<T> {
  const path = serverPath(method, wanted, shownServer())
  if (path === undefined) {
    throw new RequestFault(0, `${shownServer()} can only be read here: use its own console`)
  }
  const headers: Record<string, string> = { accept: 'application/json' }
  if (token !== '') headers.authorization = `Bearer ${token}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const used = token
  let response: Response
  let text: string
  try {
    response = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(REPLY_MS_MAX),
    })
    text = await response.text()
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error)
    contact.set({ ...contact.value, fault })
    throw new RequestFault(0, `the server does not answer: ${fault}`)
  }
  contact.set({ lastMs: Date.now(), fault: '' })
  if (response.status === 401 && used === token) needsToken.set(true)
  const value = parse(text)
  if (response.ok && value !== undefined) return value as T
  throw new RequestFault(response.status, describeProblem(response.status, value))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `value`: a problem document (RFC 9457), or what something between the page and the server sent. */
function describeProblem(status: number, value: unknown): string {
  const detail =
    typeof value === 'object' && value !== null && 'detail' in value ? value.detail : ''
  if (typeof detail === 'string' && detail !== '') return detail
  return `the reply has status ${status}, and is not of the admin API`
}
