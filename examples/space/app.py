"""The page as a Hugging Face Space; `bertram app` serves the same on your machine."""

from bertram_hf.app import Playground, build_page
from bertram_hf.app.page import launch_page

launch_page(build_page(Playground.load("sentence-transformers/all-MiniLM-L6-v2")))
