/** The bound on going on after a lost engine, for the run that keeps it and for whoever judges a record by it. */

/** How often one run goes on after its engine died under it. */
export const engineTries = 2
