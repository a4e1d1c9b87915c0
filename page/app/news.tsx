import { useEffect, useRef, useState } from 'preact/hooks';
import type { PageView } from '../model/view.ts';
import { announce } from './announce.ts';

/** ms between two announcements: whoever hears the page must be able to hear it out. */
const PAUSE_MS = 4_000;

/** Tells changes to people who hear the page; nobody sees it. */
export function News({ view }: { readonly view: PageView | undefined }) {
  const [text, setText] = useState('');
  const told = useRef<PageView | undefined>(undefined);
  const latest = useRef<PageView | undefined>(undefined);
  latest.current = view;
  // What was so when the page came is no news.
  told.current ??= view;
  useEffect(() => {
    const timer = setInterval(() => {
      const [before, after] = [told.current, latest.current];
      told.current = after;
      if (before === undefined || after === undefined || before === after) return;
      const news = announce(before, after);
      if (news !== '') setText(news);
    }, PAUSE_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="heard" role="status" aria-live="polite">
      {text}
    </div>
  );
}
