import { type BuildContents, SHOWN_CONTENTS, SHOWN_SENTENCE, SHOWN_TEXT } from '../../api/build-contents.ts';
import { cutText } from '../../api/cut-text.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { type ContentsDiff, diffContents, isDifferent } from '../../image/contents/diff-contents.ts';
import type { ImageContents } from '../../image/contents/image-contents.ts';
import { byInterest, changeCounts } from '../../image/contents/package-changes.ts';
import { summaryOf, summaryOfOne } from '../../image/contents/summary.ts';

/** What is in an image, or why that is not known: a clause. */
export type KnownContents =
  | { readonly kind: 'contents'; readonly contents: ImageContents }
  | { readonly kind: 'unknown'; readonly why: string };

/** An image with what is in it. */
export interface ComparedImage {
  readonly image: DigestedPullspec;
  readonly baseImage: string;
  readonly contents: KnownContents;
}

/**
 * @param before what the pool had; undefined where the image is its first one.
 * @param record the full list, if the registry has it.
 * @returns what the status of a build has of its image: a few sentences, however much the image has.
 */
export function compareContents(
  after: Omit<ComparedImage, 'image'>,
  before: ComparedImage | undefined,
  record: DigestedPullspec | undefined,
): BuildContents {
  const common = present({
    previousImage: before?.image,
    base: before && basesOf(before.baseImage, after.baseImage),
    record,
  });
  if (after.contents.kind === 'unknown') return { ...common, ...unknown(`the image ${after.contents.why}`) };
  if (before === undefined) return { ...common, ...sentence(summaryOfOne(after.contents.contents)) };
  if (before.contents.kind === 'unknown')
    return { ...common, ...unknown(`the image before ${before.contents.why}`) };
  const names = { from: 'the image before', to: 'the image' };
  const diff = diffContents(before.contents.contents, after.contents.contents, names);
  return { ...common, ...shown(diff) };
}

function basesOf(from: string, to: string): BuildContents['base'] {
  return from === to ? undefined : { from, to };
}

function shown(diff: ContentsDiff): Partial<BuildContents> {
  const { packages, kernels, unknown } = diff;
  const hasSummary = isDifferent(diff) || packages === undefined;
  return {
    ...(hasSummary ? sentence(summaryOf(diff, false)) : {}),
    ...present({
      packages: packages && {
        ...changeCounts(packages),
        first: byInterest(packages)
          .slice(0, SHOWN_CONTENTS)
          .map(({ change, name, from, to }) => ({
            change,
            name: cut(name),
            ...present({ from: from && cut(from), to: to && cut(to) }),
          })),
      },
      kernels:
        kernels.added.length + kernels.removed.length === 0
          ? undefined
          : { from: cutAll(kernels.removed), to: cutAll(kernels.added) },
    }),
    ...unreadable(unknown),
  };
}

function unknown(why: string): Partial<BuildContents> {
  return { ...sentence('not compared with the image before'), ...unreadable([why]) };
}

function unreadable(why: readonly string[]): Partial<BuildContents> {
  if (why.length === 0) return {};
  return { unreadable: why.slice(0, SHOWN_CONTENTS).map((each) => cut(each, SHOWN_SENTENCE)) };
}

function sentence(summary: string): Pick<BuildContents, 'summary'> {
  return { summary: cut(summary, SHOWN_SENTENCE) };
}

function cutAll(texts: readonly string[]): string[] {
  return texts.slice(0, SHOWN_CONTENTS).map((each) => cut(each));
}

/** Texts of an image are of any length, and the schema limits them. */
function cut(text: string, most = SHOWN_TEXT): string {
  return cutText(text, most);
}
