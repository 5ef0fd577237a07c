"""The boxed browser: Chromium in a box of bubblewrap, for pages that models wrote.

`box` finds both programs and says how one starts in the other, `devtools` talks with it, `render`
makes pictures of pages. There is no way to start one outside. docs/design/browser.md has the rest.
"""
