import type { ContentsDiff } from '../../image/contents/diff-contents.ts';

/** The base images of a pool before a change and after it, by digest where that is known. */
export interface ChangedBase {
  readonly from: string;
  readonly to: string;
  /** What the new one brings; absent where nobody asked for it, or it could not be read. */
  readonly contents?: BaseContents;
  /** Why it could not be read: a clause. */
  readonly unread?: string;
}

/** What a new base image brings, and as one line. */
export interface BaseContents extends ContentsDiff {
  readonly summary: string;
}
