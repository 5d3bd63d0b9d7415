/** Work that may take longer than a second. */
export interface WorkProgress {
  /** `done` of `total`, in any unit. Total 0 = it is unknown. Cheap: call it for each part. */
  at(done: number, total: number): void
  end(): void
}

/** Begins to show work; `what` names it. */
export type BeginProgress = (what: string) => WorkProgress

const NONE: WorkProgress = { at: () => {}, end: () => {} }

let begin: BeginProgress = () => NONE

/** Sets how the work of this thread is shown, from the start of the process on. The default is not at all. */
export function setProgress(next: BeginProgress | undefined): void {
  begin = next ?? (() => NONE)
}

/** Call `end` of the result in any case. */
export function beginProgress(what: string): WorkProgress {
  return begin(what)
}
