import type { CheckKind } from './check-kind.ts'

/** TCP, which only checks that a connection succeeds. */
export const TCP_CHECK: CheckKind<object> = {
  fields: [],
  sendsHostName: false,
  scan: () => ({}),
}
