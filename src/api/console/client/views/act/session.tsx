import type { AdminSession } from '../../../../../plugin/admin-session.ts'
import { Message } from '../../shell/message.tsx'
import { TokenEntry } from '../../shell/token-entry.tsx'

/** Says why the page may not act, and asks for a token. */
export function Session({ session }: { readonly session: AdminSession | undefined }) {
  if (session === undefined) return null
  const reason = session.mayAct ? '' : `This page can only preview: ${session.reason}.`
  return (
    <>
      <Message kind="info" text={reason} />
      {!session.mayAct && (
        <TokenEntry
          label="Token with the role operate"
          hint="Kept only in memory."
          action="Use this token"
        />
      )}
    </>
  )
}
