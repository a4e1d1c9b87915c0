/**
 * Runs the rest of its arguments as a process that can't outlive this one: it is killed even when this one is killed
 * without a chance to stop it (prctl(2), PR_SET_PDEATHSIG; setpriv(1)).
 */
export const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
