import { resolve } from 'node:path'
import type { Dispenser } from '../../corefile/dispenser.ts'

/** The path of a kubeconfig, and a context in it; '' = the current context. */
interface KubeconfigPlace {
  readonly kubeconfig: string
  readonly context: string
}

/** Reads `kubeconfig FILE [CONTEXT]`; `root`: the folder that FILE is relative to. Throws InputError. */
export function scanKubeconfig(d: Dispenser, root: string): KubeconfigPlace {
  const [file, context = ''] = d.remainingArgs(1, 2)
  return { kubeconfig: resolve(root, file!), context }
}
