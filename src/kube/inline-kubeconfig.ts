import { parse, YAMLParseError } from 'yaml'
import { type ApiClient, type ApiObject, isObject, type JsonValue, textOf } from './api.ts'
import { createKubeConfig } from './client-library.ts'
import { HttpsClient } from './https-client.ts'

/**
 * Five contexts with certificates, RSA keys of 4096 bits and tokens have 55 000 characters; a
 * Secret holds 1 MiB.
 */
const KUBECONFIG_CHARACTERS_MAX = 64 * 1024
/**
 * Characters that may start a YAML level. Indentation may too, but needs ever more characters. The
 * YAML library recurses as deep as the stack allows and blocks the thread for up to a second. When
 * the stack is full, V8 ends the process because it can't compile an expression any more. Five
 * hundred nested keys that are mappings themselves take minutes.
 */
const OPENING = /[[{]|[-?][ \t\r\n]/g
const OPENINGS_MAX = 100

/**
 * Allowed fields of each part; `false`: allowed but ignored. All other fields are rejected by name.
 */
const CLUSTER_FIELDS = {
  server: true,
  'certificate-authority-data': true,
  'tls-server-name': true,
  'insecure-skip-tls-verify': true,
  'disable-compression': false,
  extensions: false,
}
const USER_FIELDS = {
  token: true,
  'client-certificate-data': true,
  'client-key-data': true,
  extensions: false,
}
const DATA = ['certificate-authority-data', 'client-certificate-data', 'client-key-data']

/** A self-contained kubeconfig, reduced to one server and one user. */
export interface InlineKubeconfig {
  readonly server: string
  /** In the form of the file format, without rejected and ignored fields. */
  readonly cluster: ApiObject
  readonly user: ApiObject
  /** A warning for the log; '' = none. */
  readonly warning: string
}

/**
 * Parses a kubeconfig from untrusted data. Only its current context is used. Fields that would make
 * this process run a program, read a file or contact another server are rejected. A string is the
 * error: it names the field and never contains its value.
 */
export function scanInlineKubeconfig(text: string): InlineKubeconfig | string {
  if (text.trim() === '') return 'is empty'
  if (text.length > KUBECONFIG_CHARACTERS_MAX) {
    return `has more than ${KUBECONFIG_CHARACTERS_MAX} characters`
  }
  if ((text.match(OPENING)?.length ?? 0) > OPENINGS_MAX) return 'has too many parts'
  const config = parseText(text)
  if (typeof config === 'string') return config
  const name = textOf(config, 'current-context')
  if (name === '') return 'has no current-context'
  const context = findNamed(config, 'contexts', name, 'context')
  if (context === undefined) return 'has no context with the name in current-context'
  const cluster = findNamed(config, 'clusters', textOf(context, 'cluster'), 'cluster')
  if (cluster === undefined) return 'has no cluster with the name in its context'
  const user = findNamed(config, 'users', textOf(context, 'user'), 'user')
  if (user === undefined) return 'has no user with the name in its context'
  const problem =
    findUnfit('clusters[].cluster', cluster, CLUSTER_FIELDS) ||
    findUnfit('users[].user', user, USER_FIELDS) ||
    serverFault(textOf(cluster, 'server')) ||
    credentialsFault(user)
  if (problem !== '') return problem
  const isUnverified = cluster['insecure-skip-tls-verify'] === true
  return {
    server: textOf(cluster, 'server'),
    cluster: pick(cluster, CLUSTER_FIELDS),
    user: pick(user, USER_FIELDS),
    warning: isUnverified
      ? 'insecure-skip-tls-verify is set: an attacker on the path can read the credentials and forge records; set certificate-authority-data instead'
      : '',
  }
}

/** Creates a client with these credentials. */
export async function createInlineClient(config: InlineKubeconfig): Promise<ApiClient> {
  const kubeconfig = await createKubeConfig()
  const name = 'remote'
  const text = JSON.stringify({
    'current-context': name,
    clusters: [{ name, cluster: config.cluster }],
    users: [{ name, user: config.user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  })
  kubeconfig.loadFromString(text)
  return new HttpsClient(kubeconfig, () => Promise.resolve(kubeconfig))
}

function parseText(text: string): ApiObject | string {
  try {
    const value: JsonValue = parse(text, { logLevel: 'error', maxAliasCount: 0 })
    return isObject(value) ? value : 'is not a kubeconfig'
  } catch (error) {
    // The library's own error message quotes the text.
    if (error instanceof YAMLParseError) {
      return `is not valid YAML (line ${error.linePos?.[0].line ?? 1}: ${error.code})`
    }
    if (error instanceof ReferenceError) return 'has YAML aliases'
    throw error
  }
}

/** The part `field` of the entry with that name. */
function findNamed(
  config: ApiObject,
  list: string,
  name: string,
  field: string,
): ApiObject | undefined {
  const entries = config[list]
  if (!Array.isArray(entries) || name === '') return undefined
  const entry = entries.filter(isObject).find((one) => one.name === name)
  const part = entry?.[field]
  return isObject(part) ? part : undefined
}

function findUnfit(path: string, part: ApiObject, fields: Readonly<Record<string, boolean>>) {
  for (const [field, value] of Object.entries(part)) {
    if (value === null || value === '') continue
    if (!Object.hasOwn(fields, field)) {
      const name = /^[\w-]{1,40}$/.test(field) ? field : 'unknown field'
      return `has ${path}.${name}: only fields that contain the data itself are accepted`
    }
    const isFlag = field === 'insecure-skip-tls-verify'
    if (fields[field] === true && typeof value !== (isFlag ? 'boolean' : 'string')) {
      return `has ${path}.${field} that is not a ${isFlag ? 'boolean' : 'string'}`
    }
    if (DATA.includes(field) && !isPem(String(value))) {
      return `has ${path}.${field} that is not PEM in base64`
    }
  }
  return ''
}

function isPem(text: string): boolean {
  return Buffer.from(text, 'base64').toString('latin1').includes('-----BEGIN ')
}

/** Rejects a server without TLS: an eavesdropper must not get the credentials. */
function serverFault(server: string): string {
  const what = 'clusters[].cluster.server'
  if (!URL.canParse(server)) return `has ${what} that is not a URL`
  const { protocol, username, password, search, hash } = new URL(server)
  if (protocol !== 'https:') return `has ${what} that is not https:`
  return username + password + search + hash === ''
    ? ''
    : `has ${what} with more than scheme, host, port and path`
}

function credentialsFault(user: ApiObject): string {
  const has = (field: string): boolean => textOf(user, field) !== ''
  const [hasCertificate, hasKey] = [has('client-certificate-data'), has('client-key-data')]
  if (hasCertificate !== hasKey) {
    return 'has only one of users[].user.client-certificate-data and client-key-data; it needs both'
  }
  if (!hasCertificate && !has('token')) return 'has no credentials: set users[].user.token'
  // Rejects characters that a header must not contain.
  return /^[\x21-\x7e]*$/.test(textOf(user, 'token').trim())
    ? ''
    : 'has a users[].user.token that is not valid'
}

function pick(part: ApiObject, fields: Readonly<Record<string, boolean>>): ApiObject {
  return Object.fromEntries(
    Object.entries(part).filter(([field, value]) => fields[field] === true && value !== null),
  )
}
