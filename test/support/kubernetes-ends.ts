/** The oldest and the newest version of Kubernetes that docs/reference/support.md lists. */
export const KUBERNETES_ENDS = ['1.27.16', '1.37.2'] as const
