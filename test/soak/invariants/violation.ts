/** Something that Shale promises never happens. */
export interface Violation {
  readonly invariant: string;
  /** ms since the campaign began. */
  readonly at: number;
  /** What happened, to which object. */
  readonly message: string;
}
