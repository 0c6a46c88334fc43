"""The papers that a card cites, in BibTeX."""

BERTRAM_PAPER = r"""@inproceedings{schick-schutze-2020-bertram,
  title     = {{BERTRAM}: Improved Word Embeddings Have Big Impact on Contextualized Model Performance},
  author    = {Schick, Timo and Sch{\"u}tze, Hinrich},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  year      = {2020},
  pages     = {3996--4007},
  doi       = {10.18653/v1/2020.acl-main.368}
}"""
ATTENTIVE_MIMICKING_PAPER = r"""@inproceedings{schick-schutze-2019-attentive,
  title     = {Attentive Mimicking: Better Word Embeddings by Attending to Informative Contexts},
  author    = {Schick, Timo and Sch{\"u}tze, Hinrich},
  booktitle = {Proceedings of the 2019 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies, Volume 1 (Long and Short Papers)},
  year      = {2019},
  pages     = {489--494},
  doi       = {10.18653/v1/N19-1048}
}"""
ONE_TOKEN_APPROXIMATION_PAPER = r"""@article{schick-schutze-2020-rare,
  title   = {Rare Words: A Major Problem for Contextualized Embeddings and How to Fix it by Attentive Mimicking},
  author  = {Schick, Timo and Sch{\"u}tze, Hinrich},
  journal = {Proceedings of the AAAI Conference on Artificial Intelligence},
  volume  = {34},
  number  = {05},
  year    = {2020},
  pages   = {8766--8774},
  doi     = {10.1609/aaai.v34i05.6403}
}"""
