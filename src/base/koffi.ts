import { createRequire } from 'node:module'

/** The part of koffi that is used. Declared here because koffi is an optional dependency. */
interface Koffi {
  load(path: null): { func(prototype: string): unknown }
  address(buffer: ArrayBufferView): bigint
  /** The octets at `address`, without a copy. They must stay mapped while the buffer is in use. */
  view(address: number, octets: number): ArrayBuffer
  errno(): number
}

/** Throws an Error with the reason in one line if koffi does not load. */
export function requireKoffi(): Koffi {
  try {
    return createRequire(import.meta.url)('koffi') as Koffi
  } catch (cause) {
    const [line] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new Error(`koffi cannot be loaded: ${line}`, { cause })
  }
}

/** Returns a function that binds a function of the C library, by its C prototype. */
export function cBinder(koffi: Koffi): <Call>(prototype: string) => Call {
  const c = koffi.load(null)
  return <Call>(prototype: string): Call => c.func(prototype) as Call
}
