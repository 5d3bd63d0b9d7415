import type { MissingSignature, NamePlan } from './name-plan.ts'
import { contentKey } from './set-answers.ts'

/** Signatures that were made before they are needed. */
export class PreparedSignatures {
  readonly #byRequest = new Map<string, Uint8Array>()

  get count(): number {
    return this.#byRequest.size
  }

  add(name: string, request: MissingSignature, signature: Uint8Array): void {
    this.#byRequest.set(requestKey(name, request), signature)
  }

  clear(): void {
    this.#byRequest.clear()
  }

  /** Returns the plan of a name with the signatures that are prepared. */
  complete(plan: NamePlan): NamePlan {
    if (this.#byRequest.size === 0 || plan.missing.length === 0) return plan
    const missing = plan.missing.filter((request) => {
      const signature = this.#byRequest.get(requestKey(plan.key, request))
      plan.signatures[request.index] = signature
      return signature === undefined
    })
    return { ...plan, missing }
  }
}

function requestKey(name: string, { set, key }: MissingSignature): string {
  const { type, ttlSeconds, rdata } = set
  const content = contentKey(type, { ttlSeconds, rdata, rdataIndexes: [] })
  return `${name}\uffff${type}:${key.algorithm}:${key.tag}:${content}`
}
