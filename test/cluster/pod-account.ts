import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../support/cluster.ts'

/** Puts the files of an account where those of a pod are, for one process, and becomes it: a mount namespace of its own. */
const ENTER = `run=$(realpath /var/run) &&
mount -t tmpfs tmpfs "$run" &&
mkdir -p "$run/secrets/kubernetes.io" &&
ln -s "$1" "$run/secrets/kubernetes.io/serviceaccount" &&
shift && exec "$@"`

/** Options for a test that needs mount namespaces: skipped with the reason where they are not allowed. */
export function needsMounts(): { skip?: string } {
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs tmpfs "$(realpath /var/run)"'])
    return {}
  } catch {
    return { skip: 'no mount namespace of our own: needs root and unshare(1)' }
  }
}

/** What a process in a pod finds: an environment, and the files of its service account as a kubelet writes them. */
export class Pod {
  readonly env: Readonly<Record<string, string>>
  /** What a process is to be started by. */
  readonly wrapper: readonly [string, ...string[]]
  readonly #directory: string
  readonly #caFile: string
  #generation = 0

  /** `directory`: to be made. */
  constructor(cluster: Cluster, directory: string, token: string) {
    const { hostname, port } = new URL(cluster.url)
    this.env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
    this.wrapper = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', directory]
    this.#directory = directory
    this.#caFile = cluster.caFile
    mkdirSync(directory)
    this.rotate(token)
    for (const name of ['token', 'ca.crt', 'namespace']) {
      symlinkSync(`..data/${name}`, join(directory, name))
    }
  }

  /** All files are replaced at once: by a link to a directory that is renamed. */
  rotate(token: string): void {
    const before = `..generation-${this.#generation}`
    const now = `..generation-${++this.#generation}`
    const path = (name: string) => join(this.#directory, name)
    mkdirSync(path(now))
    writeFileSync(path(`${now}/token`), token)
    writeFileSync(path(`${now}/namespace`), 'team')
    copyFileSync(this.#caFile, path(`${now}/ca.crt`))
    symlinkSync(now, path('..data_tmp'))
    renameSync(path('..data_tmp'), path('..data'))
    rmSync(path(before), { recursive: true, force: true })
  }
}
